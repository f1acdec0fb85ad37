"""Buffer assignments and usage reports as whole programs: with a module of what they say."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from peakline import schema
from peakline.formats.hlo_text.assignment import (
    BEGINNINGS,
    Assignment,
    assignment_proto,
    heap_trace,
    read_assignment,
    read_live_ranges,
)
from peakline.formats.hlo_text.computation import Computation
from peakline.formats.hlo_text.fields import Fields
from peakline.formats.hlo_text.header import MODULE
from peakline.formats.hlo_text.losses import Losses
from peakline.formats.hlo_text.packing import Value, message, pack, utf8
from peakline.formats.hlo_text.scan import INSTRUCTION, BrokenText
from peakline.formats.hlo_text.shapes import Shapes
from peakline.formats.hlo_text.usage_report import read_report
from peakline.tables.reader import Warnings

_ROOT = re.compile(rb"\s*(?:ROOT\s+)?")
_DUMP = re.compile(
    r"module_\d+\.([^/]{1,255}?)\.(?:sm_\d[\d.]*+\w{0,255}?_)?\w{0,255}after_optimizations.*"
)
_HEAD = 4096
_USED_VALUES = b"Used values:"
"""What stands soon after the beginning of a file of values."""
_MOST_ELEMENTS, _DEEPEST = 10_000, 30


def translate_assignment(
    text: bytes | str, module: bytes | None = None, live_ranges: bytes | None = None
) -> tuple[bytes, Warnings]:
    """A ``-buffer-assignment.txt`` or ``-memory-usage-report.txt`` as xla.BufferAssignmentProto,
    and what was lost on the way.

    Values are tied to the instructions of ``module``, the bytes of an xla.HloProto; without it to
    those of `translate_program`. With the text of ``live_ranges`` it has the heaps of temporaries.
    Raises InputError where there is nothing to read.
    """
    result, warnings = _read(text)
    live = read_live_ranges(live_ranges or b"")
    traces = [trace for one in result.allocations if (trace := heap_trace(one, live))["events"]]
    if module is None:
        return assignment_proto(result, _Program(result).ids, warnings, traces), warnings
    return assignment_proto(result, ids_of(module), warnings, traces), warnings


def translate_program(text: bytes | str, name: str = "") -> tuple[bytes, Warnings]:
    """The same as xla.HloProto: a module ``name`` of one computation that has an instruction for
    every value, as far as the text describes it, and the assignment.
    """
    result, warnings = _read(text)
    program = _Program(result)
    assigned = assignment_proto(result, program.ids, warnings)
    module = message(1, program.module(name))
    # A file of values alone says nothing of memory.
    return module + message(3, assigned) if result.allocations else module, warnings


def module_name(path: str) -> str:
    """What XLA calls the module whose dump is at ``path`` (``xla/service/dump.cc``)."""
    file = PurePosixPath(path).name.removesuffix(".gz")
    result = _DUMP.fullmatch(file)
    return result[1] if result else file.partition(".")[0]


def ids_of(module: bytes) -> dict[bytes, int]:
    """The ids of the instructions of an xla.HloProto by name; of two with one name the last."""
    proto = schema.HloProto.FromString(module)
    return {
        one.name.encode(): one.id
        for computation in proto.hlo_module.computations
        for one in computation.instructions
    }


def _read(text: bytes | str) -> tuple[Assignment, Warnings]:
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    warnings = Warnings()
    warnings.add("truncated", "the text ends within a line", int(not data.endswith(b"\n")))
    head = data[:_HEAD]
    if head.startswith(BEGINNINGS[0]) or _USED_VALUES in head:
        return read_assignment(data, warnings), warnings
    return read_report(data, warnings), warnings


class _Program:
    """A computation with the instructions of all values."""

    def __init__(self, result: Assignment) -> None:
        # What the instructions name lies elsewhere: only that is lost.
        losses = Losses(Warnings())
        self._made = Computation(b"entry", 1, Shapes(), Fields(losses), losses, self._id_of)
        self._called: dict[bytes, int] = {}
        there: set[bytes] = set()
        for line in result.instructions:
            self._add(line, there)
        shapes: dict[bytes, dict[tuple[int, ...], bytes]] = {}
        opcodes: dict[bytes, bytes] = {}
        for one in result.allocations:
            for value in one.values:
                if value.name in there:
                    continue
                shapes.setdefault(value.name, {})[value.index] = value.shape
                if "is_constant" in one.flags:
                    opcodes[value.name] = b"constant"
                elif one.parameter is not None and len(one.values) == 1:
                    opcodes[value.name] = b"parameter"
        for name, parts in shapes.items():
            self._made.add(name, opcodes.get(name, b""), _whole_shape(parts))
        self.ids = self._made.ids()
        self._made.close()

    def _id_of(self, name: bytes) -> int:
        return self._called.setdefault(name, len(self._called) + 2)

    def _add(self, line: bytes, there: set[bytes]) -> None:
        start = _ROOT.match(line)
        result = INSTRUCTION.match(line, start.end() if start else 0)
        if result is None or result[2] in there:
            return
        try:
            self._made.instruction(line, result)
        except BrokenText:
            # A line that was cut: what else is known of the value is added as for the others.
            return
        there.add(result[2])

    def module(self, name: str) -> bytes:
        """The bytes of HloModuleProto."""
        fields: dict[str, Value] = {
            "name": utf8(name.encode("utf-8", "replace")),
            "entry_computation_name": b"entry",
            "entry_computation_id": 1,
            "computations": [self._made.finish(is_fused=False)],
        }
        return pack(MODULE, fields)


def _whole_shape(parts: dict[tuple[int, ...], bytes]) -> bytes:
    """The shape of an instruction of which the shapes at some places are known; elsewhere in its
    tuple nothing stands.
    """
    if () in parts:
        return parts[()]
    if any(len(place) > _DEEPEST or max(place) > _MOST_ELEMENTS for place in parts):
        return b""
    inside: dict[int, dict[tuple[int, ...], bytes]] = {}
    for place, shape in parts.items():
        inside.setdefault(place[0], {})[place[1:]] = shape
    every = range(max(inside) + 1)
    texts = (_whole_shape(inside[at]) if at in inside else b"()" for at in every)
    return b"(" + b", ".join(texts) + b")"
