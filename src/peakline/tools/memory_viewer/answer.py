"""The memory viewer's answer as XProf's JSON (``memory_viewer_preprocess.proto``).

What is zero or empty is left out, as protobuf's JSON does; numbers of 64 bits are texts. It is
written piece by piece: the answer about a large program has some hundred thousand small objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import islice
from json.encoder import encode_basestring as quoted
from typing import TypeVar

from peakline.deadline import check_deadline
from peakline.hlo.source_lines import SourceLine
from peakline.toolbox.written import quoted_csv
from peakline.tools.memory_viewer.drawing import Block, blocks_of
from peakline.tools.memory_viewer.view import SMALL_BYTES, View, allocations_in

_MIB = 1 << 20
_CHUNK = 4096
_Item = TypeVar("_Item")


def answer_json(view: View) -> bytes:
    """The whole answer."""
    return _Writer(view).answer()


def answer_csv(view: View) -> bytes:
    """What is live at the peak, the largest first; sizes in bytes."""
    header = "instruction kind opcode shape bytes unpadded_bytes op_name source_file source_line"
    known, values = view.placement.allocations, view.placement.values
    instructions = view.placement.instructions
    rows: list[tuple[object, ...]] = []
    for at in view.by_size([size for _, size in view.shown]):
        row, size = view.shown[at]
        instruction = values.instruction[row]
        defined = instruction >= 0
        line = instructions.source[instruction] if defined else None
        rows.append((
            view.name_of(row), known.category[values.allocation[row]],
            instructions.opcode[instruction] if defined else "", view.shapes.text(row), size,
            view.shapes.bytes(row), instructions.op_name[instruction] if defined else "",
            line.file if line else "", line.line if line else "",
        ))  # fmt: skip
    return quoted_csv(header.split(), rows)


class _Writer:
    """One answer; texts that occur in many objects are made once."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._out = BytesIO()
        self._values, self._instructions = view.placement.values, view.placement.instructions
        self._shapes: dict[str, str] = {}
        self._sources: dict[SourceLine, str] = {}

    def answer(self) -> bytes:
        view, curve, place = self._view, self._view.curve, self._view.placement
        self._write("{" + _member("moduleName", place.name)[1:])
        self._write(_member("entryComputationName", place.entry))
        lasting = view.lasting_bytes / _MIB
        self._list("heapSizes", curve.bytes, lambda size: repr(size / _MIB + lasting))
        self._list("unpaddedHeapSizes", curve.unpadded_bytes, lambda n: repr(n / _MIB + lasting))
        self._list("hloInstructionNames", curve.instructions, quoted)
        self._write(_number("peakHeapMib", curve.peak / _MIB + lasting))
        self._write(_number("peakUnpaddedHeapMib", curve.unpadded_peak / _MIB + lasting))
        self._write(_number("peakHeapSizePosition", curve.position))
        self._peak()
        spans = curve.spans.items()
        self._list("logicalBufferSpans", spans, self._span, "{}")
        self._sums()
        self._list("indefiniteLifetimes", view.listed, self._allocation)
        self._list("bufferBlocks", (block for block, _ in blocks_of(view)), self._block)
        self._write("}")
        # Without a copy: nothing else writes.
        return self._out.getvalue()

    def _write(self, text: str) -> None:
        self._out.write(text.encode("utf-8", "replace"))

    def _list(
        self,
        name: str,
        items: Iterable[_Item],
        text: Callable[[_Item], str],
        ends: str = "[]",
    ) -> None:
        """A member that lists something, left out where there is nothing."""
        is_first = True
        for part in _parts(map(text, items)):
            check_deadline()
            self._write((f',"{name}":{ends[0]}' if is_first else ",") + ",".join(part))
            is_first = False
        if not is_first:
            self._write(ends[1])

    # What is live at the peak.

    def _peak(self) -> None:
        view, objects, sizes, pooled = self._view, list[str](), list[int](), 0
        for row, size in view.shown:
            if size < SMALL_BYTES:
                pooled += size
            else:
                objects.append(self._object(len(objects), row, size))
                sizes.append(size)
        if pooled:
            label = _member("label", f"small (<{SMALL_BYTES} bytes)")
            size_text = _number("logicalBufferSizeMib", pooled / _MIB)
            objects.append(f'{{"numbered":{len(objects)}{label},"logicalBufferId":-1{size_text}}}')
            sizes.append(pooled)
        order = view.by_size(sizes)
        place = [0] * len(order)
        for at, number in enumerate(order):
            place[number] = at
        self._list("maxHeap", objects, str)
        self._list("maxHeapBySize", order, objects.__getitem__)
        self._list("maxHeapToBySize", place, str)
        self._list("bySizeToMaxHeap", order, str)

    def _object(self, number: int, row: int, size: int) -> str:
        view, values = self._view, self._values
        instruction = values.instruction[row]
        name, op, opcode = "", "", ""
        if instruction >= 0:
            known = self._instructions
            name, op = known.name[instruction], known.op_name[instruction]
            opcode = known.opcode[instruction]
        shape = view.shapes.text(row)
        allocations = view.placement.allocations
        members = (
            _member("label", f"{name}: {shape} # {op}"),
            _number("logicalBufferId", view.label_id(values.number[row])),
            _number("logicalBufferSizeMib", size / _MIB),
            _number("unpaddedShapeMib", view.shapes.bytes(row) / _MIB),
            _member("instructionName", view.name_of(row)),
            _member("shapeString", shape),
            _member("tfOpName", op),
            _member("groupName", allocations.category[values.allocation[row]]),
            _member("opCode", opcode),
            self._source(instruction),
        )
        return f'{{"numbered":{number}{"".join(members)}}}'

    def _source(self, instruction: int) -> str:
        line = self._instructions.source[instruction] if instruction >= 0 else None
        if line is None:
            return ""
        if line not in self._sources:
            members = (
                _member("fileName", line.file),
                _number("lineNumber", line.line),
                _member("stackFrame", line.stack),
            )
            self._sources[line] = f',"sourceInfo":{_object(members)}'
        return self._sources[line]

    def _span(self, item: tuple[int, tuple[int, int]]) -> str:
        row, (start, limit) = item
        number = self._view.label_id(self._values.number[row])
        return f'"{number}":{_object((_number("start", start), _number("limit", limit)))}'

    # Allocations.

    def _sums(self) -> None:
        view, known = self._view, self._view.placement.allocations
        parameters = reserved = outputs = total = 0
        for row in allocations_in(view.placement, view.space):
            size = known.bytes[row]
            parameters += size * known.is_parameter[row]
            reserved += size * (known.is_thread_local[row] or known.is_tuple[row])
            outputs += size * known.is_live_out[row]
            # Of threads, not of the program; so XLA (``ComputeTotalAllocationBytes``).
            total += size * (not known.is_thread_local[row])
        scoped, instruction = view.scoped
        for name, size in (
            ("entryComputationParametersMib", parameters),
            ("nonReusableMib", reserved),
            ("maybeLiveOutMib", outputs),
            ("totalBufferAllocationMib", total),
            ("indefiniteBufferAllocationMib", view.indefinite_bytes),
            ("maxScopedVmemAllocationMib", scoped),
        ):
            self._write(_number(name, size / _MIB))
        self._write(_member("maxScopedVmemInstructionName", instruction))

    def _allocation(self, row: int) -> str:
        known, values = self._view.placement.allocations, self._values
        attributes = ",".join(
            quoted(text)
            for text, fits in (
                ("entry computation parameter", known.is_parameter[row]),
                ("may-be live out", known.is_live_out[row]),
                ("reusable", not known.is_thread_local[row] and not known.is_tuple[row]),
            )
            if fits
        )
        rows = known.values(row)
        # A value that has several places is what its last one says.
        shapes = [self._shape(values.own[at]) for at in rows]
        common = shapes[0] if shapes and shapes.count(shapes[0]) == len(shapes) else ""
        listed = [self._value(*pair) for pair in zip(rows, shapes, strict=True)]
        return _object(
            (
                f',"id":"{known.number[row]}"' if known.number[row] else "",
                _number("sizeMib", known.bytes[row] / _MIB),
                f',"attributes":[{attributes}]' if attributes else "",
                f',"logicalBuffers":[{",".join(listed)}]' if listed else "",
                common.replace("shape", "commonShape", 1),
            )
        )

    def _shape(self, row: int) -> str:
        text = self._view.shapes.text(row) if row >= 0 else ""
        if text not in self._shapes:
            self._shapes[text] = _member("shape", text)
        return self._shapes[text]

    def _value(self, row: int, shape: str) -> str:
        values = self._values
        number, size = values.number[row], values.assigned_bytes[row]
        known = values.own[row]
        name = index = ""
        if known >= 0:
            instruction = values.instruction[known]
            name = self._instructions.name[instruction] if instruction >= 0 else ""
            if values.index[known]:
                index = ",".join(f'"{place}"' for place in values.index[known])
                index = f',"shapeIndex":[{index}]'
        return _object(
            (
                f',"id":"{number}"' if number else "",
                shape,
                f',"sizeMib":{size / _MIB!r}' if size else "",
                _member("hloName", name),
                index,
            )
        )

    def _block(self, block: Block) -> str:
        row, shown = block.row, self._view
        op = source = shape = ""
        unpadded, number, name = 0, -1, block.category
        if row >= 0:
            instruction = self._values.instruction[row]
            number, name = shown.label_id(self._values.number[row]), shown.name_of(row)
            shape, unpadded = shown.shapes.text(row), shown.shapes.bytes(row)
            if instruction >= 0:
                op = self._instructions.op_name[instruction]
            source = self._source(instruction)
        return _object(
            (
                _number("logicalBufferId", number),
                _member("name", name),
                _number("offset", float(block.offset)),
                _number("size", float(block.bytes)),
                _number("startStep", block.start),
                _number("endStep", block.end),
                _member("tfOpName", op),
                _member("category", block.category),
                source,
                _member("shapeString", shape),
                _number("unpaddedSize", float(unpadded)),
                _member("color", block.colour),
            )
        )


def _parts(texts: Iterator[str]) -> Iterator[list[str]]:
    while part := list(islice(texts, _CHUNK)):
        yield part


def _member(name: str, text: str) -> str:
    """A text as a member of an object that has one before it; nothing for an empty one."""
    return f',"{name}":{quoted(text)}' if text else ""


def _number(name: str, number: float) -> str:
    return f',"{name}":{number!r}' if number else ""


def _object(members: Iterable[str]) -> str:
    return "{" + "".join(members)[1:] + "}"
