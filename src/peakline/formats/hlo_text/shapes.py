"""Shapes in HLO's text form as ShapeProto: ``f32[128,256]{1,0:T(8,128)S(1)}``, tuples of them.

The syntax is that of ``ShapeUtil::HumanStringWithLayout`` and ``Layout::ToString`` in openxla/xla;
an array without a layout has its last dimension innermost, as in XLA's parser.
"""

from __future__ import annotations

import re
from functools import cache

from peakline.formats.hlo_text.packing import Value, enum_numbers, message, pack
from peakline.formats.hlo_text.scan import ARRAY, COMMENT, closing, items

_ARRAY = re.compile(rb"\s*+([a-z]\w*+)\[([^\]]*+)\]\s*+(\{.*\})?+\s*+", re.DOTALL)
_START = re.compile(rb"\s*+" + ARRAY)
_LAYOUT_ITEM = re.compile(rb"(SC|[A-Z#*])(?=\()")
_UNBOUNDED = -(2**63)
"""``?`` as a dimension and ``*`` in a tile (``Shape::kUnboundedSize``, ``Tile::kCombineDimension``)
are the least number of 64 bits."""
_DEEPEST = 40
"""Levels of tuples; a message may nest 100 levels, and its readers take more than one for each."""
_MOST_SHAPES = 50_000
_WITHOUT_LAYOUT = frozenset((b"token", b"opaque"))


@cache
def element_types() -> dict[bytes, int]:
    """The numbers of the types of elements by how they are written: ``f32``, ``pred``."""
    numbers = enum_numbers("xla.ShapeProto", "element_type")
    result = {name.lower().encode(): number for name, number in numbers.items() if number}
    return result | {b"opaque": numbers["OPAQUE_TYPE"]}


def shape_end(text: bytes, at: int) -> int:
    """Where the shape at ``at`` ends; -1 where none is."""
    first = text[at : at + 1]
    if first == b"(":
        return closing(text, at)
    result = _START.match(text, at)
    if result is None:
        bracket = text.find(b"[", at, at + 40)
        end = closing(text, bracket) if bracket > at else -1
        return closing(text, end) if end > 0 and text[end : end + 1] == b"{" else end
    if text[result.end() : result.end() + 1] == b"{" and not result[0].endswith(b"}"):
        return closing(text, result.end())
    return result.end()


class Shapes:
    """Shapes as bytes of ShapeProto; each text is read once."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}

    def of(self, text: bytes) -> bytes:
        """The shape; raises ValueError where ``text`` is none."""
        known = self._known.get(text)
        if known is None:
            if len(self._known) > _MOST_SHAPES:
                self._known.clear()
            known = self._known[text] = self._read(text)
        return known

    def _read(self, text: bytes) -> bytes:
        if b"/*" in text:
            text = COMMENT.sub(b"", text)
        text = text.strip()
        if text[:1] != b"(":
            return array(text)
        # Level by level: the parts of every tuple that is not closed yet.
        tuple_type, at = _tuple_start(), 1
        levels = [[tuple_type]]
        while True:
            at = _skip_space(text, at)
            one = text[at : at + 1]
            if one == b"(":
                if len(levels) == _DEEPEST:
                    raise ValueError(text[:40])
                levels.append([tuple_type])
                at += 1
            elif one == b")":
                whole = b"".join(levels.pop())
                at += 1
                if not levels:
                    if text[at:].strip():
                        raise ValueError(text[:40])
                    return whole
                levels[-1].append(message(4, whole))
            elif one == b",":
                at += 1
            else:
                end = shape_end(text, at)
                if end <= at:
                    raise ValueError(text[:40])
                levels[-1].append(message(4, self.of(text[at:end])))
                at = end


def parts(text: bytes) -> list[bytes]:
    """The texts of a tuple's elements; none of another shape."""
    text = COMMENT.sub(b"", text).strip()
    return list(items(text[1:-1])) if text[:1] == b"(" else []


@cache
def _tuple_start() -> bytes:
    return pack("xla.ShapeProto", {"element_type": "TUPLE"})


def _skip_space(text: bytes, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def array(text: bytes) -> bytes:
    """The shape of what is no tuple; raises ValueError where ``text`` is none."""
    result = _ARRAY.fullmatch(text)
    if result is None or result[1] not in element_types():
        raise ValueError(text[:40])
    kind, inside, layout = result.groups()
    sizes = [size.strip() for size in inside.split(b",")] if inside.strip() else []
    fields: dict[str, Value] = {
        "element_type": element_types()[kind],
        "dimensions": [_dimension(size) for size in sizes],
        "is_dynamic_dimension": [size[:1] in {b"<", b"?"} for size in sizes],
    }
    if kind not in _WITHOUT_LAYOUT:
        try:
            fields["layout"] = _layout(layout[1:-1] if layout else None, len(sizes))
        except (IndexError, KeyError):
            raise ValueError(layout) from None
    return pack("xla.ShapeProto", fields)


def _dimension(text: bytes) -> int:
    return _UNBOUNDED if text == b"?" else _natural(text.lstrip(b"<="))


def _natural(text: bytes) -> int:
    if not text.isdigit():
        raise ValueError(text)
    return int(text)


def _naturals(text: bytes) -> list[Value]:
    return [_natural(one) for one in items(text)]


def _layout(text: bytes | None, rank: int) -> dict[str, Value]:
    order, _, more = (text or b"").partition(b":")
    fields: dict[str, Value] = {
        "minor_to_major": _naturals(order) if order.strip() else list(range(rank - 1, -1, -1)),
        "tail_padding_alignment_in_elements": 1,
    }
    at = 0
    while at < len(more):
        result = _LAYOUT_ITEM.match(more, at)
        if result is None:
            raise ValueError(more)
        at = result.end()
        inside: list[bytes] = []
        while more[at : at + 1] == b"(":
            end = closing(more, at)
            if end < 0:
                raise ValueError(more)
            inside.append(more[at + 1 : end - 1].strip())
            at = end
        _layout_item(result[1], inside, fields)
    return fields


def _layout_item(name: bytes, inside: list[bytes], fields: dict[str, Value]) -> None:
    plain = {b"L": "tail_padding_alignment_in_elements", b"E": "element_size_in_bits",
             b"S": "memory_space", b"M": "dynamic_shape_metadata_prefix_bytes"}  # fmt: skip
    types = {b"#": "index_primitive_type", b"*": "pointer_primitive_type"}
    if name in plain:
        fields[plain[name]] = _natural(inside[0])
    elif name in types:
        fields[types[name]] = element_types()[inside[0]]
    elif name == b"T":
        fields["tiles"] = [
            {"dimensions": [_UNBOUNDED if one == b"*" else _natural(one) for one in items(tile)]}
            for tile in inside
        ]
    elif name == b"SC":
        splits = (split.partition(b":") for split in inside)
        fields["split_configs"] = [
            {"dimension": _natural(dimension), "split_indices": _naturals(indices)}
            for dimension, _, indices in splits
        ]
    elif name == b"D":
        levels = {b"D": 0, b"C": 1, b"S": 2, b"H": 3}
        kinds = list(items(inside[0]))
        fields["dim_level_types"] = [levels[kind[:1]] for kind in kinds]
        fields["dim_unique"] = [b"+" not in kind for kind in kinds]
        fields["dim_ordered"] = [b"~" not in kind for kind in kinds]
    elif name == b"P":
        fields["physical_shape"] = array(inside[0])
    else:
        raise ValueError(name)
