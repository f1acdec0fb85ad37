"""The attributes behind an instruction's operands, as fields of HloInstructionProto; metadata
(``{op_name="jit(f)/add" source_line=3}``) as OpMetadata.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import ClassVar

from peakline.formats.hlo_text import attributes as known
from peakline.formats.hlo_text.losses import Losses
from peakline.formats.hlo_text.packing import Value, message, pack, utf8
from peakline.formats.hlo_text.scan import ATTRIBUTE, BrokenText, attribute_value, items, unquoted
from peakline.wire.tables import varint

_PAIR = re.compile(
    rb'\s*+([a-z_]++)=(?:"((?:[^"\\]++|\\.)*+)"|([^\s{}"]++)|\{([^{}"]*+)\})', re.DOTALL
)
_TEXTS = {b"op_type": 1, b"op_name": 2, b"source_file": 3, b"deduplicated_name": 12,
          b"scheduling_name": 16}  # fmt: skip
_NUMBERS = {
    b"source_line": 4, b"source_end_line": 17, b"source_column": 18, b"source_end_column": 19,
    b"stack_frame_id": 15, b"size_of_generated_code_in_bytes": 8,
    b"size_of_memory_working_set_in_bytes": 9,
}  # fmt: skip
_LISTS = {b"profile_type": "profile_type"}
_SKIPPED = frozenset((b"preserve_layout", b"profile_info", b"metadata_payload"))
_MOST_NUMBER = re.compile(rb"-?\d{1,19}")


def metadata_field(value: bytes) -> tuple[bytes, int]:
    """The field of HloInstructionProto, and how many parts of it are unknown.

    Raises ValueError where ``value`` is no metadata.
    """
    inside: list[bytes] = []
    unknown, at, end = 0, 1, len(value) - 1
    if value[:1] != b"{":
        raise ValueError(value[:40])
    while (result := _PAIR.match(value, at, end)) is not None:
        name, text, word, braced = result.groups()
        at = result.end()
        if text is not None and name in _TEXTS:
            if text:
                plain = unquoted(b'"%b"' % text) if b"\\" in text else text
                inside.append(message(_TEXTS[name], utf8(plain)))
        elif word is not None and name in _NUMBERS:
            if not _MOST_NUMBER.fullmatch(word):
                raise ValueError(word[:40])
            if int(word):
                inside.append(varint(_NUMBERS[name] << 3) + varint(int(word)))
        elif braced is not None and name in _LISTS:
            kinds: list[Value] = [one.strip().decode() for one in braced.split(b",") if one.strip()]
            inside.append(pack("xla.OpMetadata", {_LISTS[name]: kinds}))
        elif name not in _SKIPPED:
            unknown += 1
    if value[at:end].strip():
        raise ValueError(value[:40])
    return message(_FIELD, b"".join(inside)), unknown


_FIELD = 7
"""``metadata`` of HloInstructionProto."""


_MOST_KNOWN, _LONG = 50_000, 4096
_ENDS = b" \t\r\n}/"
_PRODUCTS = frozenset((b"dot", b"convolution", b"ragged-dot", b"scaled-dot"))
_GROUPED = frozenset((b"convolution", b"custom-call"))
_WITH_DEFAULTS = _PRODUCTS | _GROUPED | {b"topk"}


class Fields:
    """The attributes of one instruction after the other.

    ``made`` are the fields of the last one, ``said`` the names of its attributes, ``calls`` the
    ids of the computations that it calls and their places, ``controls`` the names of its control
    predecessors, ``thread`` where an asynchronous call runs.
    """

    SHARED: ClassVar[frozenset[bytes]] = frozenset(
        (b"metadata", b"backend_config", b"frontend_attributes")
    )
    OF_ASYNC: ClassVar[frozenset[bytes]] = frozenset(
        (b"async_execution_thread", b"output_to_operand_aliasing")
    )

    def __init__(self, losses: Losses) -> None:
        self.made: list[bytes] = []
        self.said: list[bytes] = []
        self.calls: list[tuple[int, int]] = []
        self.controls: list[bytes] = []
        self.thread = b""
        self._losses = losses
        self._known: dict[bytes, tuple[bytes, bytes]] = {}

    def named(self) -> Iterator[tuple[bytes, bytes]]:
        """The names of the attributes with the fields; defaults have no name."""
        return zip(self.said, self.made, strict=True)

    def read(
        self, text: bytes, at: int, opcode: bytes, operands: int, id_of: Callable[[bytes], int]
    ) -> int:
        """Read the attributes at ``at`` of an instruction, and return where they end."""
        made: list[bytes] = []
        said: list[bytes] = []
        self.made, self.said, self.calls, self.controls, self.thread = made, said, [], [], b""
        grouped: dict[str, dict[str, Value]] = {}
        known_fields = self._known
        while (result := ATTRIBUTE.match(text, at)) is not None:
            whole = result[0]
            before = known_fields.get(whole)
            if before is not None:
                said.append(before[0])
                made.append(before[1])
                at = result.end()
                continue
            name = result[1]
            value, at = attribute_value(text, result)
            try:
                field = self._field(name, value, opcode, grouped, id_of)
            except (ValueError, UnicodeDecodeError, TypeError):
                self._losses.value(text, at, name)
                continue
            said.append(name)
            made.append(field)
            if len(whole) < _LONG and name in _CACHED:
                if len(self._known) > _MOST_KNOWN:
                    self._known.clear()
                self._known[whole] = name, field
        if at < len(text) and text[at] not in _ENDS:
            raise BrokenText(text, at, "the end of an instruction")
        if grouped:
            more = list(_grouped_fields(opcode, grouped))
            made += more
            said += [b""] * len(more)
        if opcode in _WITH_DEFAULTS:
            more = list(_defaults(opcode, operands, said))
            made += more
            said += [b""] * len(more)
        return at

    def _field(
        self,
        name: bytes,
        value: bytes,
        opcode: bytes,
        grouped: dict[str, dict[str, Value]],
        id_of: Callable[[bytes], int],
    ) -> bytes:
        """The field of one attribute; empty where it goes elsewhere."""
        if name == b"metadata":
            field, unknown = metadata_field(value)
            if unknown:
                self._losses.attribute(b"in metadata")
            return field
        if name in known.CALLS:
            braced = value[:1] == b"{"
            names = list(items(value[1:-1])) if braced else [value]
            place = known.CALLS[name]
            self.calls += [(place, id_of(unquoted(one.removeprefix(b"%")))) for one in names]
            return b""
        if name == b"control-predecessors":
            self.controls = [unquoted(one.removeprefix(b"%")) for one in items(value[1:-1])]
            return b""
        if name in known.PARTS and not (name == b"algorithm" and opcode == b"rng-bit-generator"):
            owner = known.owner_of(name, opcode)
            if not owner:
                raise ValueError(name)
            grouped.setdefault(owner, {})[known.PARTS[name][1]] = known.part_value(name, value)
            return b""
        if name in known.SKIPPED:
            return b""
        field_or_none = known.fields_of(name, value, opcode)
        if field_or_none is None:
            self._losses.attribute(name)
            return b""
        if name == b"async_execution_thread":
            self.thread = unquoted(value)
        return field_or_none

    @staticmethod
    def comparison(element_type: int) -> bytes:
        """How a comparison compares values of a type where it does not say."""
        return _comparison(element_type)


_CACHED = known.plain_names() | {b"metadata"}
"""Attributes whose fields depend on nothing but their value."""


@cache
def _comparison(element_type: int) -> bytes:
    return pack(known.INSTRUCTION, {"comparison_type": known.default_comparison(element_type)})


def _grouped_fields(opcode: bytes, grouped: dict[str, dict[str, Value]]) -> Iterator[bytes]:
    """The messages that several attributes make up."""
    if opcode == b"ragged-dot" and "dot_dimension_numbers" in grouped:
        ragged = grouped.setdefault("ragged_dot_dimension_numbers", {})
        ragged["dot_dimension_numbers"] = grouped.pop("dot_dimension_numbers")
    for owner, parts in grouped.items():
        if owner != "precision_config":
            yield pack(known.INSTRUCTION, {owner: parts})
    if "precision_config" in grouped:
        parts = grouped["precision_config"]
        if "operand_precision" not in parts and opcode in _PRODUCTS:
            parts["operand_precision"] = ["DEFAULT", "DEFAULT"]
        yield pack(known.INSTRUCTION, {"precision_config": parts})


def _defaults(opcode: bytes, operands: int, said: list[bytes]) -> Iterator[bytes]:
    """What XLA's parser sets where the text does not say it: it prints only what is different."""
    if opcode in _GROUPED:
        for field in ("feature_group_count", "batch_group_count"):
            if field.encode() not in said:
                yield _default(field, 1)
    if (opcode in _PRODUCTS or opcode == b"custom-call") and not (
        b"operand_precision" in said or b"algorithm" in said
    ):
        yield _precision(2 if opcode in _PRODUCTS else operands)
    if opcode == b"custom-call" and b"api_version" not in said:
        yield _default("custom_call_api_version", 1)
    elif opcode == b"topk" and b"largest" not in said:
        yield _default("largest", 1)


@cache
def _default(field: str, value: int) -> bytes:
    return pack(known.INSTRUCTION, {field: value})


def _precision(operands: int) -> bytes:
    levels: list[Value] = [0] * operands
    return pack(known.INSTRUCTION, {"precision_config": {"operand_precision": levels}})
