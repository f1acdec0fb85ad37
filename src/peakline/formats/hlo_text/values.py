"""Values of attributes, as the values of fields; what is none raises ValueError."""

from __future__ import annotations

import re
from collections.abc import Mapping

from peakline.formats.hlo_text.packing import Value, enum_numbers
from peakline.formats.hlo_text.scan import items, unquoted


def braced(value: bytes) -> list[bytes]:
    """The parts of ``{a,b}``."""
    if value[:1] != b"{" or value[-1:] != b"}":
        raise ValueError(value)
    return list(items(value[1:-1]))


def integer(value: bytes) -> int:
    """A number of 64 bits."""
    if not _INTEGER.fullmatch(value) or not -_MOST <= int(value) < _MOST:
        raise ValueError(value[:40])
    return int(value)


_INTEGER = re.compile(rb"-?\d{1,19}")
_MOST = 2**63


def enum(full_name: str, field: str, name: str) -> int:
    """The number of an enum's value."""
    numbers = enum_numbers(full_name, field)
    if name not in numbers:
        raise ValueError(name[:40])
    return numbers[name]


def integers(value: bytes) -> list[Value]:
    """``{1,2}``."""
    return [integer(one) for one in braced(value)]


def truth(value: bytes) -> bool:
    """``true`` or ``false``."""
    if value not in {b"true", b"false"}:
        raise ValueError(value[:40])
    return value == b"true"


def truths(value: bytes) -> list[Value]:
    """``{true,false}``, or one of them."""
    return [truth(one) for one in (braced(value) if value[:1] == b"{" else [value])]


def text(value: bytes) -> bytes:
    """A text in quotes, or as it stands."""
    return unquoted(value)


def word(value: bytes) -> str:
    """The name of a value of an enum."""
    return value.decode()


def prefixed(prefix: str, value: bytes) -> str:
    """The same where the name of the enum comes before it."""
    return prefix + value.decode().upper()


def slices(value: bytes) -> list[Value]:
    """``{[0:8], [0:8:2]}``: start, limit and stride of each dimension."""
    result: list[Value] = []
    for one in braced(value):
        numbers = [integer(part) for part in one[1:-1].split(b":")]
        if one[:1] != b"[" or one[-1:] != b"]" or len(numbers) not in {2, 3}:
            raise ValueError(one)
        stride = numbers[2] if len(numbers) == 3 else 1
        result.append({"start": numbers[0], "limit": numbers[1], "stride": stride})
    return result


_WINDOW = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def window(value: bytes) -> Mapping[str, Value]:
    """``{size=3x3 stride=2x2 pad=0_1x0_1}``: by dimension, what is not said being 1 or nothing."""
    said: dict[str, list[bytes]] = {}
    for one in value[1:-1].split():
        name, _, numbers = one.decode().partition("=")
        if name not in _WINDOW:
            raise ValueError(one)
        said[name] = numbers.encode().split(b"x")
    rank = len(said.get("size", ()))
    if any(len(numbers) != rank for numbers in said.values()):
        raise ValueError(value[:40])
    rows: list[Value] = []
    for at in range(rank):
        low, _, high = said["pad"][at].partition(b"_") if "pad" in said else (b"0", b"", b"0")
        one_of = {name: said[name][at] if name in said else b"1" for name in _WINDOW}
        rows.append(
            {
                "size": integer(one_of["size"]),
                "stride": integer(one_of["stride"]),
                "padding_low": integer(low),
                "padding_high": integer(high),
                "window_dilation": integer(one_of["rhs_dilate"]),
                "base_dilation": integer(one_of["lhs_dilate"]),
                "window_reversal": "rhs_reversal" in said and one_of["rhs_reversal"] == b"1",
            }
        )
    return {"dimensions": rows}


def padding(value: bytes) -> Mapping[str, Value]:
    """``0_1x2_3_1``: by dimension the padding before, behind and between elements."""
    rows: list[Value] = []
    for one in value.split(b"x"):
        low, high, *between = (integer(part) for part in one.split(b"_"))
        rows.append(
            {
                "edge_padding_low": low,
                "edge_padding_high": high,
                "interior_padding": between[0] if between else 0,
            }
        )
    return {"dimensions": rows}


_LABELS = re.compile(rb"([\dbf?]+)_([\dio?]+)->([\dbf?]+)")


def convolution(value: bytes) -> Mapping[str, Value]:
    """``b01f_01io->b01f``: where batch, features and the spatial dimensions lie."""
    result = _LABELS.fullmatch(value)
    if result is None:
        raise ValueError(value[:40])
    fields: dict[str, Value] = {}
    sides = (("input", "b", "f"), ("kernel", "i", "o"), ("output", "b", "f"))
    names = {"b": "batch_dimension", "f": "feature_dimension", "i": "input_feature_dimension",
             "o": "output_feature_dimension"}  # fmt: skip
    for (side, *letters), labels in zip(sides, result.groups(), strict=True):
        text = labels.decode()
        for letter in letters:
            fields[f"{side}_{names[letter]}"] = text.index(letter)
        spatial = sum(one.isdigit() for one in text)
        fields[f"{side}_spatial_dimensions"] = [text.index(str(one)) for one in range(spatial)]
    return fields


_IOTA = re.compile(rb"\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(rb"@?mesh\[([^\]]*)\](?:,?\s*device_ids=\(([^)]*)\))?\s*\{([^}]*)\}")
_QUOTED = rb"'((?:[^'\\]++|\\.)*+)(?:'|\\?+\Z)"
_AXIS = re.compile(_QUOTED + rb"(?:=(\d+))?", re.DOTALL)
_AXIS_USE = re.compile(_QUOTED + rb"(?::\((\d+)\)(\d+))?", re.DOTALL)


def replica_groups(value: bytes) -> Mapping[str, Value]:
    """Groups one by one, ``{{0,1},{2,3}}``; ``[2,4]<=[8]``; or along axes of a mesh."""
    if value[:1] == b"{":
        groups: list[Value] = [{"replica_ids": integers(one)} for one in braced(value)]
        return {"collective_device_list": {"replica_groups": groups}} if groups else {}
    iota = _IOTA.fullmatch(value)
    if iota is not None:
        count, size, dims, order = iota.groups()
        shape = [integer(one) for one in dims.split(b",")]
        turned = [integer(one) for one in order.split(b",")] if order else list(range(len(shape)))
        return {
            "iota_collective_device_list": {
                "num_replica_groups": integer(count),
                "num_devices_per_group": integer(size),
                "iota_reshape_dims": [*shape],
                "iota_transpose_perm": [*turned],
            }
        }
    mesh = _MESH.fullmatch(value)
    if mesh is None:
        raise ValueError(value[:40])
    axes = [(name, size) for name, size in _AXIS.findall(mesh[1]) if size]
    places = {name: at for at, (name, _) in enumerate(axes)}
    used: list[Value] = []
    for name, before, size in _AXIS_USE.findall(mesh[3]):
        if name not in places:
            raise ValueError(name)
        part: dict[str, Value] = {"mesh_axis_index": places[name]}
        if size:
            part["sub_axis_info"] = {"pre_size": integer(before), "size": integer(size)}
        used.append(part)
    return {
        "mesh_axes_replica_group_list": {
            "mesh": {"axes": [{"name": name, "size": integer(size)} for name, size in axes]},
            "axes": used,
        }
    }


def pairs(value: bytes) -> list[Value]:
    """``{{0,1},{1,0}}``: who sends to whom."""
    result: list[Value] = []
    for one in braced(value):
        source, target = integers(one)
        result.append({"source": source, "target": target})
    return result


_ALIAS = re.compile(
    rb"(\{[\d,\s]*+\})\s*+:\s*+\(?+\s*+(\d++)(?:\s*+,\s*+(\{[\d,\s]*+\}))?"
    rb"(?:\s*+,\s*+([\w-]++))?\s*+\)?+"
)


def aliases(value: bytes) -> list[tuple[list[Value], int, list[Value], bytes]]:
    """``{ {0}: (1, {}, may-alias) }``: output's index, number and index of what it shares, how."""
    result = []
    for one in braced(value):
        parts = _ALIAS.fullmatch(one)
        if parts is None:
            raise ValueError(one[:40])
        index, number, inner, kind = parts.groups()
        result.append((integers(index), integer(number), integers(inner or b"{}"), kind or b""))
    return result


def output_aliasing(value: bytes) -> list[Value]:
    """`aliases` as OutputOperandAliasing."""
    return [
        {"output_shape_index": output, "operand_index": number, "operand_shape_index": operand}
        for output, number, operand, _ in aliases(value)
    ]


def frontend(value: bytes) -> Mapping[str, Value]:
    """``{a="1",b={...}}``: names and texts."""
    entries: list[Value] = []
    for one in braced(value):
        name, equals, text = one.partition(b"=")
        if not equals:
            raise ValueError(one[:40])
        entries.append({"key": unquoted(name.strip()), "value": unquoted(text.strip())})
    return {"map": entries}
