"""Tables of a program's computations and instructions, and of how they hang together."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache, cached_property

import numpy as np

from peakline import schema
from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.formats.hlo_proto.categories import categories_of
from peakline.formats.hlo_proto.frames import FRAME_ID, Lines
from peakline.formats.hlo_proto.shapes import Shape
from peakline.formats.hlo_proto.source import INSTRUCTIONS, ProgramSource
from peakline.tables.columns import Column, Columns, Names
from peakline.text import ROW_BYTES, check_length
from peakline.wire import Plan, WireTable, decode, joined

_DILATIONS = ("base_dilation", "window_dilation")


def read_computations(source: ProgramSource, columns: AbstractSet[str] | None = None) -> Columns:
    """Table ``hlo_computations`` of one program: without names where ``columns`` has none."""
    table = source.computations
    rows = np.arange(table.rows)
    of, roots = source.ids.group, source.roots
    counts = np.bincount(of, minlength=table.rows).astype(np.int64)
    ordered = np.bincount(of[source.schedule >= 0], minlength=table.rows)
    names: dict[str, Column] = {}
    if columns is None or "name" in columns:
        names["name"] = source.names("computation", table.spans("name"))
    return Columns(
        {
            "computation_id": rows,
            "native_id": table.array("id").astype(np.int64),
            **names,
            "is_entry": rows == source.entry,
            "is_fusion": table.array("is_fusion_computation").astype(np.bool_),
            "instructions": counts,
            "root_id": roots,
            "is_scheduled": (ordered == counts) & (counts > 0),
        },
        {"root_id": roots >= 0},
    )


_PATHS = {
    "name": ("name",),
    "opcode": (),
    "category": tuple(f"window.dimensions.{name}" for name in _DILATIONS),
    "fusion_kind": (),
    "called": (),
    "target": ("custom_call_target",),
    "op_name": ("metadata.op_name",),
    "op_type": ("metadata.op_type",),
    "source_file": ("metadata.source_file", FRAME_ID),
    "source_line": ("metadata.source_file", "metadata.source_line", FRAME_ID),
    "stack_id": (FRAME_ID,),
    "shape": (),
    "layout": (),
    "bytes": (),
    "parameter_number": (),
    "tuple_index": (),
}


def read_instructions(
    source: ProgramSource, columns: AbstractSet[str] | None, rows: Int64Array | None = None
) -> Columns:
    """Table ``hlo_instructions`` of one program: at least ``columns``, all of them for None.

    With ``rows`` only these, in their order.
    """
    wanted = _PATHS.keys() if columns is None else columns & _PATHS.keys()
    made = _Instructions(source, sorted({path for name in wanted for path in _PATHS[name]}), rows)
    schedule = source.schedule[made.rows].astype(np.int64)
    data: dict[str, Column] = {
        "instruction_id": made.rows,
        "computation_id": source.ids.group[made.rows].astype(np.int64),
        "native_id": source.ids.number[made.rows],
        "is_root": made.is_root(),
        "schedule_index": schedule,
    }
    valid = {"schedule_index": schedule >= 0}
    for name in wanted:
        column = getattr(made, name)()
        if isinstance(column, tuple):
            data[name], valid[name] = column
        else:
            data[name] = column
    return Columns(data, valid)


@cache
def _plan(paths: tuple[str, ...]) -> Plan:
    return Plan(schema.shape("xla.HloInstructionProto"), paths)


class _Instructions:
    """The columns of the table, a method for each."""

    def __init__(self, source: ProgramSource, paths: list[str], rows: Int64Array | None) -> None:
        self._source = source
        self.rows = np.arange(source.ids.count) if rows is None else rows
        """The rows of the table that these are."""
        self._is_whole = rows is None
        common = source.structure[INSTRUCTIONS]
        self._decoded, self._prefix = source.structure, f"{INSTRUCTIONS}."
        if rows is None and paths:
            self._decoded = source.decode(*(f"{INSTRUCTIONS}.{path}" for path in paths))
        if rows is not None or self._table.rows != source.ids.count:
            # Read one by one, a damaged instruction stays, without what is damaged in it.
            spans = common.spans("@span").take(self.rows)
            self._decoded, self._prefix = decode(source.buffer, _plan(("@span", *paths)), spans), ""

    @property
    def _table(self) -> WireTable:
        return self._decoded[self._prefix.rstrip(".")]

    def _below(self, name: str) -> WireTable:
        return self._decoded[f"{self._prefix}{name}"]

    def _text(self, field: str, *, empty: bool = True) -> Names:
        return self._source.names(field, self._table.spans(field), empty=empty)

    def _of_metadata(self, field: str) -> Names:
        meta = self._below("metadata")
        result = self._source.names(field, meta.spans(field), empty=False)
        codes = np.full(self.rows.size, -1, np.int32)
        codes[meta.parent] = result.codes
        return Names(codes, result.values)

    def is_root(self) -> BoolArray:
        """Whether each is its computation's result; of two with its number the first is."""
        result: BoolArray = self._source.roots[self._source.ids.group[self.rows]] == self.rows
        return result

    def name(self) -> Names:
        return self._text("name")

    def opcode(self) -> Names:
        result = self._source.opcodes
        return result if self._is_whole else result.take(self.rows)

    def fusion_kind(self) -> Names:
        kinds = self._source.structure[INSTRUCTIONS].spans("fusion_kind")
        listed = kinds if self._is_whole else kinds.take(self.rows)
        return self._source.names("fusion_kind", listed, empty=False)

    def target(self) -> Names:
        return self._text("custom_call_target", empty=False)

    def op_name(self) -> Names:
        return self._of_metadata("op_name")

    def op_type(self) -> Names:
        return self._of_metadata("op_type")

    def parameter_number(self) -> tuple[Int64Array, BoolArray]:
        return self._number_of("parameter")

    def tuple_index(self) -> tuple[Int64Array, BoolArray]:
        return self._number_of("get-tuple-element")

    def _number_of(self, opcode: str) -> tuple[Int64Array, BoolArray]:
        is_one = self.opcode().per_row(opcode.__eq__, np.bool_)
        field = "parameter_number" if opcode == "parameter" else "tuple_index"
        numbers = self._source.structure[INSTRUCTIONS].array(field)
        return numbers[self.rows].astype(np.int64), is_one

    def called(self) -> Names:
        source = self._source
        calls = source.structure[f"{INSTRUCTIONS}.called_computation_ids"]
        rows = source.called(calls)
        fits = rows >= 0
        every = source.computations.spans("name")
        names = every.take(rows[fits])
        size = int(names.length.sum(dtype=np.int64))
        check_length(size, int(every.length.sum(dtype=np.int64)) + ROW_BYTES * len(names))
        parent = calls.parent[fits]
        text, spans = joined(source.buffer, names, parent, source.ids.count)
        result = source.strings.of("called")
        codes = result.add(text, spans.take(self.rows))
        codes[np.bincount(parent, minlength=source.ids.count)[self.rows] == 0] = -1
        return Names(codes, result.values)

    # Shapes.

    def _codes(self) -> tuple[Int32Array, list[Shape]]:
        return self._source.shapes[self.rows], self._source.strings.shapes.shapes

    def shape(self) -> Names:
        codes, shapes = self._codes()
        return _texts(codes, [shape.text for shape in shapes])

    def layout(self) -> Names:
        codes, shapes = self._codes()
        return _texts(codes, [shape.layout.text if shape.layout else None for shape in shapes])

    def bytes(self) -> Int64Array:
        codes, shapes = self._codes()
        return np.array([shape.bytes for shape in shapes], np.int64)[codes]

    def category(self) -> Names:
        opcodes = self.opcode()
        dilated = []
        for name in _DILATIONS:
            windows, sizes = self._below("window"), self._below("window.dimensions")
            marked = np.zeros(self.rows.size, np.bool_)
            marked[windows.parent[sizes.parent[sizes.array(name) > 1]]] = True
            dilated.append(marked)
        rank = np.zeros(self.rows.size, np.bool_)
        changed = np.flatnonzero(opcodes.per_row("bitcast-convert".__eq__, np.bool_))
        if changed.size:
            first = self._source.first_operand(self.rows[changed])
            codes, shapes = self._source.shapes, self._source.strings.shapes.shapes
            own, other = (codes[rows] for rows in (self.rows[changed], np.maximum(first, 0)))
            ranks = np.array([len(shape.dimensions) for shape in shapes])
            rank[changed] = (first >= 0) & (ranks[own] != ranks[other])
        return categories_of(opcodes, self.fusion_kind(), dilated[0], dilated[1], rank)

    # Lines of the program.

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self._source, self._below("metadata"), self.rows.size)

    def stack_id(self) -> tuple[Int64Array, BoolArray]:
        return self._lines.stack, self._lines.stack >= 0

    def source_file(self) -> Names:
        return self._lines.file

    def source_line(self) -> tuple[Int64Array, BoolArray]:
        return self._lines.line, self._lines.file.codes >= 0


def read_operands(source: ProgramSource) -> Columns:
    """Table ``hlo_operands`` of one program; an operand that names nothing has no row."""
    fields = ("operand_ids", "control_predecessor_ids")
    decoded = source.structure
    parts = []
    for field in fields:
        listed = decoded[f"{INSTRUCTIONS}.{field}"]
        rows = source.operands(listed)
        source.losses["hlo_reference", field] = int((rows < 0).sum())
        parts.append((listed.parent.astype(np.int64), _places(listed), rows))
    user, place, operand = (np.concatenate([part[n] for part in parts]) for n in range(3))
    is_control = np.repeat([False, True], [part[0].size for part in parts])
    result = Columns(
        {"instruction_id": user, "place": place, "operand_id": operand, "is_control": is_control}
    )
    if is_control.any():
        result = result.take(np.lexsort((place, is_control, user)))
    known = result.array("operand_id") >= 0
    return result if known.all() else result.take(known)


def read_calls(source: ProgramSource) -> Columns:
    """Table ``hlo_calls`` of one program; a call that names nothing has no row."""
    calls = source.structure[f"{INSTRUCTIONS}.called_computation_ids"]
    rows = source.called(calls)
    source.losses["hlo_reference", "calls"] = int((rows < 0).sum())
    result = rows >= 0
    return Columns(
        {
            "instruction_id": calls.parent[result].astype(np.int64),
            "place": _places(calls)[result],
            "computation_id": rows[result],
        }
    )


def _places(listed: WireTable) -> Int64Array:
    """The place of every entry among those of its parent; parents ascend."""
    if not listed.rows:
        return np.zeros(0, np.int64)
    begins = np.append(True, listed.parent[1:] != listed.parent[:-1])
    first: Int64Array = np.maximum.accumulate(np.where(begins, np.arange(listed.rows), 0))
    return np.arange(listed.rows) - first


def _texts(codes: Int32Array, texts: Sequence[str | None]) -> Names:
    """Texts per code as a column: several codes can have one text."""
    result = Names.encode(texts)
    return Names(result.codes[codes] if texts else codes, result.values)
