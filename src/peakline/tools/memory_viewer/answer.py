"""The memory viewer's answer as XProf's JSON (``memory_viewer_preprocess.proto``).

What is zero or empty is left out, as protobuf's JSON does; numbers of 64 bits are texts. It is
written piece by piece: the answer about a large program has some hundred thousand small objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from io import BytesIO
from itertools import islice
from json.encoder import encode_basestring as quoted
from typing import TypeVar

from peakline.deadline import check_deadline
from peakline.toolbox.written import quoted_csv
from peakline.tools.memory_viewer.drawing import Block, blocks_of
from peakline.tools.memory_viewer.view import SMALL_BYTES, View, allocations_in, index_text

_MIB = 1 << 20
_CHUNK = 4096
_EMPTY = '""'
_SIZE = "logicalBufferSizeMib"
_ATTRIBUTES = ("entry computation parameter", "may-be live out", "reusable")
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


class _Mib(dict[int, str]):
    """Sizes in bytes as texts of MiB."""

    def __missing__(self, size: int) -> str:
        found = self[size] = repr(size / _MIB)
        return found


class _Quoted(dict[str, str]):
    """Texts that occur often, in quotes."""

    def __missing__(self, text: str) -> str:
        found = self[text] = quoted(text)
        return found


class _Writer:
    """One answer; texts that occur in many objects are made once."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._out = BytesIO()
        self._values, self._instructions = view.placement.values, view.placement.instructions
        self._sources: dict[int, str] = {}
        self._sizes, self._quoted = _Mib(), _Quoted()
        self._shapes = [self._quoted[shape.text_with_layout] for shape in self._instructions.shape]

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
            label = f'"label":"small (<{SMALL_BYTES} bytes)","logicalBufferId":-1'
            objects.append(f'{{"numbered":{len(objects)},{label}{self._mib(_SIZE, pooled)}}}')
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
        name = op = opcode = _EMPTY
        if instruction >= 0:
            known = self._instructions
            name, op = quoted(known.name[instruction]), self._quoted[known.op_name[instruction]]
            opcode = self._quoted[known.opcode[instruction]]
        shape = self._shape(row)
        category = view.placement.allocations.category[values.allocation[row]]
        index = values.index[row]
        shown = f'{name[:-1]}{index_text(index)}"' if index else name
        return (
            f'{{"numbered":{number},"label":{name[:-1]}: {shape[1:-1]} # {op[1:]}'
            f"{_number('logicalBufferId', view.label_id(values.number[row]))}"
            f"{self._mib(_SIZE, size)}{self._mib('unpaddedShapeMib', view.shapes.bytes(row))}"
            f"{_text('instructionName', shown)}{_text('shapeString', shape)}"
            f'{_text("tfOpName", op)},"groupName":"{category}"{_text("opCode", opcode)}'
            f"{self._source(instruction)}}}"
        )

    def _mib(self, name: str, size: int) -> str:
        return f',"{name}":{self._sizes[size]}' if size else ""

    def _shape(self, row: int) -> str:
        """The shape of a value, in quotes."""
        instruction = self._values.instruction[row]
        if instruction >= 0 and not self._values.index[row]:
            return self._shapes[instruction]
        return self._quoted[self._view.shapes.text(row)]

    def _source(self, instruction: int) -> str:
        line = self._instructions.source[instruction] if instruction >= 0 else None
        if line is None:
            return ""
        # Equal lines are one object, which stays as long as the instructions do.
        found = self._sources.get(id(line))
        if found is None:
            members = (
                _member("fileName", line.file),
                _number("lineNumber", line.line),
                _member("stackFrame", line.stack),
            )
            found = self._sources[id(line)] = f',"sourceInfo":{_object(members)}'
        return found

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
        known = self._view.placement.allocations
        texts, shapes = self._values_in(known.values(row))
        listed = ",".join(texts)
        common = shapes[0] if shapes and shapes.count(shapes[0]) == len(shapes) else _EMPTY
        number = known.number[row]
        flags = known.is_parameter[row], known.is_live_out[row]
        attributes = _attributes(*flags, not (known.is_thread_local[row] or known.is_tuple[row]))
        return _object(
            (
                f',"id":"{number}"' if number else "",
                self._mib("sizeMib", known.bytes[row]),
                f',"attributes":[{attributes}]' if attributes else "",
                f',"logicalBuffers":[{listed}]' if listed else "",
                _text("commonShape", common),
            )
        )

    def _values_in(self, rows: range) -> tuple[list[str], list[str]]:
        """The values in an allocation, and their shapes in quotes."""
        values, sizes, names = self._values, self._sizes, self._instructions.name
        texts, shapes = [], []
        for row in rows:
            # A value that has several places is what its last one says.
            known, size, number = values.own[row], values.assigned_bytes[row], values.number[row]
            instruction = values.instruction[known] if known >= 0 else -1
            is_plain = instruction >= 0 and not values.index[known]
            if not (is_plain and size and number and names[instruction]):
                shapes.append(self._shape(known) if known >= 0 else _EMPTY)
                texts.append(self._value(row, shapes[-1]))
                continue
            # Nearly all of them: nothing is left out.
            shape = self._shapes[instruction]
            shapes.append(shape)
            texts.append(
                f'{{"id":"{number}","shape":{shape},"sizeMib":{sizes[size]},'
                f'"hloName":{quoted(names[instruction])}}}'
            )
        return texts, shapes

    def _value(self, row: int, shape: str) -> str:
        values = self._values
        number, known = values.number[row], values.own[row]
        name = index = ""
        if known >= 0:
            instruction = values.instruction[known]
            name = self._instructions.name[instruction] if instruction >= 0 else ""
            name = _member("hloName", name)
            if values.index[known]:
                index = ",".join(f'"{place}"' for place in values.index[known])
                index = f',"shapeIndex":[{index}]'
        size = self._mib("sizeMib", values.assigned_bytes[row])
        if not number:
            return _object((_text("shape", shape), size, name, index))
        return f'{{"id":"{number}"{_text("shape", shape)}{size}{name}{index}}}'

    def _block(self, block: Block) -> str:
        row = block.row
        more, number, name = "", -1, quoted(block.category)
        if row >= 0:
            instruction = self._values.instruction[row]
            op = self._instructions.op_name[instruction] if instruction >= 0 else ""
            number = self._view.label_id(self._values.number[row])
            name = quoted(self._view.name_of(row))
            more = (
                f"{_text('shapeString', self._shape(row))}{_text('tfOpName', self._quoted[op])}"
                f"{_number('unpaddedSize', float(self._view.shapes.bytes(row)))}"
                f"{self._source(instruction)}"
            )
        places = (("startStep", block.start), ("endStep", block.end))
        return (
            f'{{"color":"{block.colour}","category":"{block.category}"{_text("name", name)}'
            f"{_number('logicalBufferId', number)}{_number('offset', float(block.offset))}"
            f"{_number('size', float(block.bytes))}{''.join([_number(*one) for one in places])}"
            f"{more}}}"
        )


@cache
def _attributes(*flags: bool) -> str:
    """What an allocation is, by whether each of `_ATTRIBUTES` fits."""
    return ",".join(quoted(text) for text, fits in zip(_ATTRIBUTES, flags, strict=True) if fits)


def _parts(texts: Iterator[str]) -> Iterator[list[str]]:
    while part := list(islice(texts, _CHUNK)):
        yield part


def _text(name: str, text: str) -> str:
    """As `_member`, of a text in quotes."""
    return f',"{name}":{text}' if text != _EMPTY else ""


def _member(name: str, text: str) -> str:
    """A text as a member of an object that has one before it; nothing for an empty one."""
    return f',"{name}":{quoted(text)}' if text else ""


def _number(name: str, number: float) -> str:
    return f',"{name}":{number!r}' if number else ""


def _object(members: Iterable[str]) -> str:
    return "{" + "".join(members)[1:] + "}"
