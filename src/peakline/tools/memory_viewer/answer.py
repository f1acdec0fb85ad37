"""The memory viewer's answer as XProf's JSON (``memory_viewer_preprocess.proto``).

What is zero or empty is left out, as protobuf's JSON does; numbers of 64 bits are texts. It is
written from columns, some thousand objects at a time: the answer about a large program has some
hundred thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, partial
from io import SEEK_CUR, BytesIO
from json.encoder import encode_basestring as quoted

import numpy as np

from peakline.arrays import AnyArray, Float64Array, Int64Array
from peakline.deadline import check_deadline
from peakline.hlo.placement import CATEGORIES, SourceLine
from peakline.tables.columns import Names
from peakline.toolbox.json_rows import escaped, lists, member, numbers, objects, same, texts
from peakline.toolbox.written import quoted_csv
from peakline.tools.memory_viewer.drawing import ALLOCATION_COLOUR, COLOURS, Blocks, blocks_of
from peakline.tools.memory_viewer.view import (
    SMALL_BYTES,
    View,
    allocations_in,
    index_text,
    spans_by_row,
)
from peakline.wire.encode import Messages, Spans, encode

_MIB = 1 << 20
_BLOCK = 1 << 14
_ROOM = 64 << 20
"""Bytes that an answer begins with, not in use before they are written: one that grows from nothing
leaves holes in memory as large."""
_SIZE = "logicalBufferSizeMib"
_ATTRIBUTES = ("entry computation parameter", "may-be live out", "reusable")


def answer_json(view: View) -> bytes:
    """The whole answer."""
    return _Writer(view).answer()


def answer_csv(view: View) -> bytes:
    """What is live at the peak, the largest first; sizes in bytes."""
    header = "instruction kind opcode shape bytes unpadded_bytes op_name source_file source_line"
    known, values = view.placement.allocations, view.placement.values
    instructions = view.placement.instructions
    order = view.by_size(view.shown_bytes.tolist())
    shown = view.shown[order]
    columns = (
        shown, known.category[values.allocation[shown]], values.instruction[shown],
        view.shown_bytes[order], view.shapes.bytes[shown],
    )  # fmt: skip
    rows: list[tuple[object, ...]] = []
    for row, category, instruction, size, unpadded in zip(*map(_items, columns), strict=True):
        defined = instruction >= 0
        line = instructions.lines[instructions.line[instruction]] if defined else None
        rows.append((
            view.name_of(row), CATEGORIES[category],
            instructions.opcode[instruction] if defined else "", view.shapes.text(row), size,
            unpadded, instructions.op_name[instruction] if defined else "",
            line.file if line else "", line.line if line else "",
        ))  # fmt: skip
    return quoted_csv(header.split(), rows)


def _items(column: Int64Array) -> list[int]:
    result: list[int] = column.tolist()
    return result


class _Column:
    """Texts of rows inside the quotes of JSON; none of a row of -1."""

    def __init__(self, codes: AnyArray, distinct: Messages) -> None:
        self._codes, self._distinct = np.append(codes.astype(np.int64), -1), distinct

    @classmethod
    def of(cls, names: Names) -> _Column:
        return cls(names.codes, escaped(names.values))

    def at(self, rows: AnyArray) -> Spans:
        return self._distinct.at(self._codes[rows])


class _Writer:
    """One answer."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._out = BytesIO(bytes(_ROOM))
        self._values = view.placement.values
        known = view.placement.instructions
        self._names, self._ops = _Column.of(known.name), _Column.of(known.op_name)
        self._opcodes = _Column.of(known.opcode)
        self._sources = _Column(known.line, texts(map(_source, known.lines)))
        self._paths = _Column(self._values.path, texts(map(index_text, self._values.paths)))
        self._shapes = _Column(view.shapes.code, escaped(view.shapes.texts))
        self._categories = texts(CATEGORIES)

    def answer(self) -> bytes:
        view, curve, place = self._view, self._view.curve, self._view.placement
        self._write("{" + _member("moduleName", place.name)[1:])
        self._write(_member("entryComputationName", place.entry))
        lasting = view.lasting_bytes / _MIB
        self._rows("heapSizes", _mib(curve.bytes) + lasting, _sizes)
        self._rows("unpaddedHeapSizes", _mib(curve.unpadded_bytes) + lasting, _sizes)
        self._rows("hloInstructionNames", np.array(curve.instructions, np.int64), self._events)
        self._write(_number("peakHeapMib", curve.peak / _MIB + lasting))
        self._write(_number("peakUnpaddedHeapMib", curve.unpadded_peak / _MIB + lasting))
        self._write(_number("peakHeapSizePosition", curve.position))
        self._peak()
        first = np.sort(np.unique(curve.spans[:, 0], return_index=True)[1])
        self._rows("logicalBufferSpans", curve.spans[first, 0], self._spans, "{}")
        self._sums()
        self._rows("indefiniteLifetimes", view.listed, self._allocations)
        self._rows("bufferBlocks", np.arange(self._drawn.row.size), self._blocks)
        self._write("}")
        self._out.truncate()
        # Without a copy: nothing else writes.
        return self._out.getvalue()

    def _write(self, text: str) -> None:
        self._out.write(text.encode("utf-8", "replace"))

    def _list(self, name: str, items: Sequence[int]) -> None:
        self._write(f',"{name}":[{",".join(map(str, items))}]')

    def _rows(
        self, name: str, rows: AnyArray, made: Callable[[AnyArray], Messages], ends: str = "[]"
    ) -> None:
        """A member that lists what is ``made`` of rows, each with a comma behind it; left out where
        there are none.
        """
        if rows.size:
            self._write(f',"{name}":{ends[0]}')
            for part in _parts(rows):
                self._out.write(made(part).view)
            self._close(ends[1])

    def _close(self, end: str) -> None:
        """Put the end of a list in the place of its last comma."""
        self._out.seek(-1, SEEK_CUR)
        self._write(end)

    def _events(self, names: Int64Array) -> Messages:
        parts = [same('"', names.size), self._event_names.at(names), same('",', names.size)]
        return encode(names.size, parts)

    @cached_property
    def _event_names(self) -> Messages:
        return escaped(self._view.placement.event_names.values)

    # What is live at the peak.

    def _peak(self) -> None:
        view = self._view
        is_large = view.shown_bytes >= SMALL_BYTES
        shown, sizes = view.shown[is_large], view.shown_bytes[is_large].tolist()
        pooled = sum(view.shown_bytes[~is_large].tolist())
        if not (sizes or pooled):
            return
        self._write(',"maxHeap":[')
        bounds = [np.array([self._out.tell()])]
        for numbered in _parts(np.arange(shown.size)):
            made = self._objects(numbered, shown[numbered], view.shown_bytes[is_large][numbered])
            bounds.append(made.bounds[1:] + self._out.tell())
            self._out.write(made.view)
        if pooled:
            label = f'"label":"small (<{SMALL_BYTES} bytes)","logicalBufferId":-1'
            self._write(f'{{"numbered":{len(sizes)},{label},"{_SIZE}":{pooled / _MIB!r}}},')
            bounds.append(np.array([self._out.tell()]))
            sizes.append(pooled)
        self._close("]")
        order = np.array(view.by_size(sizes))
        self._rows("maxHeapBySize", order, partial(self._again, np.concatenate(bounds)))
        self._list("maxHeapToBySize", np.argsort(order).tolist())
        self._list("bySizeToMaxHeap", order.tolist())

    def _objects(self, numbered: Int64Array, rows: Int64Array, sizes: Int64Array) -> Messages:
        view, values = self._view, self._values
        instruction = values.instruction[rows]
        name, op = self._names.at(instruction), self._ops.at(instruction)
        shape, category = self._shapes.at(rows), view.placement.allocations.category
        every = np.ones(rows.size, np.bool_)
        return objects(
            rows.size,
            member("numbered", "{}", numbers(numbered, zero="0")),
            member("label", '"{}: {} # {}"', name, shape, op, present=every),
            member("logicalBufferId", "{}", numbers(view.label_id(values.number[rows]))),
            member(_SIZE, "{}", numbers(sizes / _MIB)),
            member("unpaddedShapeMib", "{}", numbers(view.shapes.bytes[rows] / _MIB)),
            member("instructionName", '"{}{}"', name, self._paths.at(rows)),
            member("shapeString", '"{}"', shape),
            member("tfOpName", '"{}"', op),
            member("groupName", '"{}"', self._categories.at(category[values.allocation[rows]])),
            member("opCode", '"{}"', self._opcodes.at(instruction)),
            member("sourceInfo", "{}", self._sources.at(instruction)),
        )

    def _again(self, bounds: Int64Array, rows: Int64Array) -> Messages:
        """Objects that the answer has already, between ``bounds``."""
        written = np.frombuffer(self._out.getbuffer(), np.uint8)
        spans = Spans(written, bounds[rows], bounds[rows + 1] - 1)
        return encode(rows.size, [spans, same(",", rows.size)])

    def _spans(self, rows: Int64Array) -> Messages:
        number = numbers(self._view.label_id(self._values.number[rows]), zero="0")
        start, limit = (numbers(ends[rows]) for ends in self._ends)
        span = objects(rows.size, member("start", "{}", start), member("limit", "{}", limit)).at(
            np.arange(rows.size)
        )
        return encode(rows.size, [same('"', rows.size), number, same('":', rows.size), span])

    @cached_property
    def _ends(self) -> tuple[Int64Array, Int64Array]:
        return spans_by_row(self._view.curve.spans, self._values.own.size)

    # Allocations.

    def _sums(self) -> None:
        view, known = self._view, self._view.placement.allocations
        here = allocations_in(view.placement, view.space)
        scoped, instruction = view.scoped
        for name, counted in (
            ("entryComputationParametersMib", known.is_parameter),
            ("nonReusableMib", known.is_thread_local | known.is_tuple),
            ("maybeLiveOutMib", known.is_live_out),
            # Of threads, not of the program; so XLA (``ComputeTotalAllocationBytes``).
            ("totalBufferAllocationMib", ~known.is_thread_local),
        ):
            self._write(_number(name, sum(known.bytes[here[counted[here]]].tolist()) / _MIB))
        self._write(_number("indefiniteBufferAllocationMib", view.indefinite_bytes / _MIB))
        self._write(_number("maxScopedVmemAllocationMib", scoped / _MIB))
        self._write(_member("maxScopedVmemInstructionName", instruction))

    def _allocations(self, rows: Int64Array) -> Messages:
        known, code = self._view.placement.allocations, self._view.shapes.code
        flags = (
            known.is_parameter, known.is_live_out, ~(known.is_thread_local | known.is_tuple)
        )  # fmt: skip
        flagged = (np.stack(flags)[:, rows] << np.arange(len(flags))[:, None]).sum(axis=0)
        values, place = known.values(rows)
        counts = np.bincount(place, minlength=rows.size)
        # The shape that all its values have.
        shape = np.full(rows.size, -1)
        shape[place] = values
        differ = code[values] != code[shape[place]]
        shape[place[differ]] = -1
        return objects(
            rows.size,
            member("id", '"{}"', numbers(known.number[rows])),
            member("sizeMib", "{}", numbers(known.bytes[rows] / _MIB)),
            member("attributes", "[{}]", _attributes().at(flagged)),
            member("logicalBuffers", "[{}]", lists(self._places(values), counts)),
            member("commonShape", '"{}"', self._shapes.at(shape)),
        )

    def _places(self, rows: Int64Array) -> Messages:
        """Values where they lie in an allocation."""
        values = self._values
        return objects(
            rows.size,
            member("id", '"{}"', numbers(values.number[rows])),
            member("shape", '"{}"', self._shapes.at(rows)),
            member("sizeMib", "{}", numbers(values.assigned_bytes[rows] / _MIB)),
            member("hloName", '"{}"', self._names.at(values.instruction[rows])),
            member("shapeIndex", '["{}"]', self._indices.at(values.path[rows])),
        )

    @cached_property
    def _indices(self) -> Messages:
        return texts('","'.join(map(str, path)) for path in self._values.paths)

    @cached_property
    def _drawn(self) -> Blocks:
        return blocks_of(self._view)

    def _blocks(self, at: Int64Array) -> Messages:
        view, drawn, values = self._view, self._drawn, self._values
        row, category = drawn.row[at], drawn.category[at]
        is_value = row >= 0
        instruction = np.append(values.instruction, -1)[row]
        number = view.label_id(np.append(values.number, -1)[row])
        whole = self._categories.at(np.where(is_value, -1, category))
        unpadded = np.append(view.shapes.bytes, 0)[row]
        return objects(
            at.size,
            member("color", '"{}"', _colours().at(drawn.colour[at] + 1)),
            member("category", '"{}"', self._categories.at(category)),
            member("name", '"{}{}{}"', whole, self._names.at(instruction), self._paths.at(row)),
            member("logicalBufferId", "{}", numbers(number)),
            member("offset", "{}", numbers(drawn.offset[at])),
            member("size", "{}", numbers(drawn.bytes[at].astype(np.float64))),
            member("startStep", "{}", numbers(drawn.start[at])),
            member("endStep", "{}", numbers(drawn.end[at])),
            member("shapeString", '"{}"', self._shapes.at(row)),
            member("tfOpName", '"{}"', self._ops.at(instruction)),
            member("unpaddedSize", "{}", numbers(unpadded.astype(np.float64))),
            member("sourceInfo", "{}", self._sources.at(instruction)),
        )


def _sizes(sizes: Float64Array) -> Messages:
    return encode(sizes.size, [numbers(sizes, zero="0.0"), same(",", sizes.size)])


def _parts(rows: AnyArray) -> Iterator[AnyArray]:
    for begin in range(0, rows.size, _BLOCK):
        check_deadline()
        yield rows[begin : begin + _BLOCK]


@cache
def _attributes() -> Messages:
    """What an allocation is: a bit for each of `_ATTRIBUTES` that fits."""
    return texts(
        ",".join(quoted(text) for bit, text in enumerate(_ATTRIBUTES) if flags >> bit & 1)
        for flags in range(1 << len(_ATTRIBUTES))
    )


@cache
def _colours() -> Messages:
    return texts((ALLOCATION_COLOUR, *COLOURS))


def _mib(sizes: Sequence[int]) -> Float64Array:
    return np.array(sizes, np.float64) / _MIB


def _source(line: SourceLine | None) -> str:
    if line is None:
        return ""
    members = (
        _member("fileName", line.file),
        _number("lineNumber", line.line),
        _member("stackFrame", line.stack),
    )
    return "{" + "".join(members)[1:] + "}"


def _member(name: str, text: str) -> str:
    """A text as a member of an object that has one before it; nothing for an empty one."""
    return f',"{name}":{quoted(text)}' if text else ""


def _number(name: str, number: float) -> str:
    return f',"{name}":{number!r}' if number else ""
