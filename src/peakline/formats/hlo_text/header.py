"""What an HLO text says of a whole module: its attributes, and the tables of its stack frames."""

from __future__ import annotations

import re
from collections.abc import Callable

from peakline.formats.hlo_text.packing import Value, message, pack
from peakline.formats.hlo_text.scan import BrokenText, items, skip, unquoted
from peakline.formats.hlo_text.shapes import Shapes, parts, shape_end
from peakline.formats.hlo_text.values import aliases, frontend, integers

MODULE = "xla.HloModuleProto"

SKIPPED = frozenset(
    b"allow_spmd_sharding_propagation_to_parameters allow_spmd_sharding_propagation_to_output "
    b"alias_passthrough_params origin_recovery_table is_dynamic replica_count num_partitions "
    b"is_scheduled device_ids sharding spmd_output_sharding spmd_parameters_shardings".split()
)
"""Known attributes that HloModuleProto has no field for, or of no use to what reads it here."""

_DONOR = re.compile(rb"\(\s*(\d{1,18})\s*,\s*(\{[\d,\s]*\})\s*\)")


def module_fields(name: bytes, value: bytes, shapes: Shapes) -> bytes | None:
    """The fields of HloModuleProto that an attribute stands for, None for an unknown one.

    Raises ValueError where the value is none of the attribute.
    """
    read = _READERS.get(name)
    if read is None:
        return b"" if name in SKIPPED else None
    return pack(MODULE, read(value, shapes))


def _alias(value: bytes, _: Shapes) -> dict[str, Value]:
    kinds = {b"must-alias": "MUST_ALIAS", b"may-alias": "MAY_ALIAS", b"": "MAY_ALIAS"}
    entries: list[Value] = []
    for output, number, index, kind in aliases(value):
        if kind not in kinds:
            raise ValueError(kind)
        entries.append(
            {
                "output_shape_index": output,
                "parameter_number": number,
                "parameter_shape_index": index,
                "kind": kinds[kind],
            }
        )
    return {"input_output_alias": {"entries": entries}}


def _donor(value: bytes, _: Shapes) -> dict[str, Value]:
    entries: list[Value] = []
    for one in items(value[1:-1]):
        result = _DONOR.fullmatch(one)
        if result is None:
            raise ValueError(one[:40])
        index: list[Value] = [*integers(result[2])]
        entries.append({"parameter_number": int(result[1]), "parameter_shape_index": index})
    return {"buffer_donor": {"entries": entries}}


def _layout(value: bytes, shapes: Shapes) -> dict[str, Value]:
    inner = value[1:-1].strip()
    end = shape_end(inner, 0)
    if inner[:1] != b"(" or end < 0 or inner[end : end + 2] != b"->":
        raise ValueError(value[:40])
    parameters: list[Value] = [shapes.of(one) for one in parts(inner[:end])]
    result = shapes.of(inner[end + 2 :])
    return {"host_program_shape": {"parameters": parameters, "result": result}}


def _frontend(value: bytes, _: Shapes) -> dict[str, Value]:
    return {"frontend_attributes": frontend(value)}


_READERS: dict[bytes, Callable[[bytes, Shapes], dict[str, Value]]] = {
    b"input_output_alias": _alias,
    b"buffer_donor": _donor,
    b"entry_computation_layout": _layout,
    b"frontend_attributes": _frontend,
}

# Stack frames.

_TABLE = re.compile(rb"(FileNames|FunctionNames|FileLocations|StackFrames)\b")
_ROW = re.compile(rb'\s*+\d++\s*+(?:("(?:[^"\\]++|\\.)*+")|\{([^{}"]*+)\})', re.DOTALL)
_PAIR = re.compile(rb"\b(\w++)=(-?\d{1,19})")
_FIELDS = {
    b"FileNames": "file_names", b"FunctionNames": "function_names",
    b"FileLocations": "file_locations", b"StackFrames": "stack_frames",
}  # fmt: skip
_NUMBERS = {
    b"FileLocations": ("file_name_id", "function_name_id", "line", "end_line", "column",
                       "end_column"),
    b"StackFrames": ("file_location_id", "parent_frame_id"),
}  # fmt: skip


def stack_frames(text: bytes, at: int) -> tuple[bytes, int]:
    """The tables at ``at`` as a field of HloModuleProto, empty without them, and their end.

    Rows count from 1. Where a frame has no parent the text has 1, and one more than the parent's
    number otherwise (``HloModule::Print`` and the parser in openxla/xla). Raises BrokenText.
    """
    inside: list[bytes] = []
    start = at
    while (table := _TABLE.match(text, at)) is not None:
        field, numbers = _FIELDS[table[1]], _NUMBERS.get(table[1])
        at = table.end()
        while (row := _ROW.match(text, at)) is not None:
            if (numbers is None) != (row[1] is not None):
                raise BrokenText(text, row.start(), f"a row of {table[1].decode()}")
            value: Value = unquoted(row[1]) if row[1] is not None else _numbers(row[2], numbers)
            try:
                inside.append(pack("xla.StackFrameIndexProto", {field: [value]}))
            except ValueError as error:
                raise BrokenText(text, row.start(), f"a row of {table[1].decode()}") from error
            at = row.end()
        at = skip(text, at)
    if at == start:
        return b"", at
    return message(17, b"".join(inside)), at


def _numbers(row: bytes, names: tuple[str, ...] | None) -> dict[str, Value]:
    fields: dict[str, Value] = {}
    for name, number in _PAIR.findall(row):
        key = name.decode()
        if names is not None and key in names:
            fields[key] = max(int(number) - 1, 0) if key == "parent_frame_id" else int(number)
    return fields
