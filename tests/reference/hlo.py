"""The tables of a compiled program in the simplest way, on its message.

Slow, and without code of ours but the message classes. Costs and runs are not among the columns.
What the format does not allow is read by the rules that `docs/programs.md` gives.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from peakline.schema import HloProto
from tests.reference.hlo_memory import memory_rows
from tests.reference.hlo_shapes import bytes_of, layout_of, text_of

Rows = list[dict[str, Any]]

_PER_ELEMENT = """
abs acos acosh asin asinh atanh bitcast-convert cbrt ceil convert cosh cosine count-leading-zeros
erf exponential exponential-minus-one floor imag is-finite log log-plus-one logistic negate not
popcnt real reduce-precision round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh
add and atan2 compare complex divide maximum minimum mulhi multiply or power remainder shift-left
shift-right-arithmetic shift-right-logical stochastic-convert subtract xor clamp select map rng
constant
""".split()
_LIBRARIES = re.compile(
    r"(site|dist)-packages[/\\]|[/\\]torch[/\\]|[/\\]jax[/\\]_src[/\\]|torchinductor_"
    r"|[/\\]lib[/\\]python3[^/\\]*[/\\]|^<frozen |^<string>$|^<__array_function__"
)
_PYTHON = re.compile(r"\.(py|ipynb)$|^<ipython|ipykernel", re.IGNORECASE)


class Reference:
    """The rows of all tables of one program, and what of it names nothing or fits nothing."""

    def __init__(self, proto: HloProto) -> None:
        self.proto, self.module = proto, proto.hlo_module
        self.losses: Counter[str] = Counter()
        self.instructions = [
            (row, computation, one)
            for row, (computation, one) in enumerate(
                (number, one)
                for number, computation in enumerate(self.module.computations)
                for one in computation.instructions
            )
        ]
        self.row_of: dict[tuple[int, int], int] = {}
        """By computation and number; of two the first."""
        self.computation_of: dict[int, int] = {}
        for row, computation, one in self.instructions:
            self.row_of.setdefault((computation, one.id), row)
        for number, computation in enumerate(self.module.computations):
            self.computation_of.setdefault(computation.id, number)
        self.entry = self._entry()
        self.place = self._schedule()
        self.order = self._flattened()
        self.tables = self._tables()

    def _entry(self) -> int:
        every = self.module.computations
        for number, one in enumerate(every):
            if one.id == self.module.entry_computation_id:
                return number
        for number, one in enumerate(every):
            if one.name == self.module.entry_computation_name:
                return number
        return len(every) - 1

    def _schedule(self) -> dict[int, int]:
        """The place of each scheduled instruction in its computation."""
        result = {}
        for key, sequence in self.module.schedule.sequences.items():
            computation = self.computation_of.get(key)
            for place, number in enumerate(sequence.instruction_ids):
                row = self.row_of.get((computation, number)) if computation is not None else None
                if row is not None:
                    result[row] = place
        return result

    def _flattened(self) -> dict[int, int]:
        """The place of each instruction that runs, in the order of the whole program."""
        order: list[int] = []
        seen = set[int]()

        def visit(computation: int) -> None:
            seen.add(computation)
            mine = [row for row, of, _ in self.instructions if of == computation]
            for row in sorted(mine, key=lambda row: self.place.get(row, -1)):
                one = self.instructions[row][2]
                if one.opcode in ("while", "call", "conditional", "async-start", "async-update"):
                    called_ids = list(one.called_computation_ids)
                    for number in called_ids[::-1] if one.opcode == "while" else called_ids:
                        called = self.computation_of.get(number)
                        if called is not None and called not in seen:
                            visit(called)
                order.append(row)

        if self.entry >= 0:
            visit(self.entry)
        return {row: place for place, row in enumerate(order)}

    def _tables(self) -> dict[str, Rows]:
        buffers, events, facts = memory_rows(self)
        return {
            "hlo_modules": [self._module() | facts],
            "hlo_computations": list(map(self._computation, range(len(self.module.computations)))),
            "hlo_instructions": [self._instruction(*one) for one in self.instructions],
            "hlo_operands": self._operands(),
            "hlo_calls": self._calls(),
            "hlo_frames": self._frames(),
            "hlo_buffers": buffers,
            "hlo_heap_events": events,
        }

    def _module(self) -> dict[str, Any]:
        code = sum(one.metadata.size_of_generated_code_in_bytes for _, _, one in self.instructions)
        every = self.module.computations
        return {
            "name": self.module.name,
            "entry": every[self.entry].name if every else "",
            "computations": len(every),
            "instructions": len(self.instructions),
            "is_scheduled": bool(self.place),
            "generated_code_bytes": code if code > 0 else None,
        }

    def _computation(self, number: int) -> dict[str, Any]:
        one = self.module.computations[number]
        rows = [row for row, of, _ in self.instructions if of == number]
        return {
            "computation_id": number,
            "native_id": one.id,
            "name": one.name,
            "is_entry": number == self.entry,
            "is_fusion": one.is_fusion_computation,
            "instructions": len(rows),
            "root_id": self.row_of.get((number, one.root_id)),
            "is_scheduled": bool(rows) and all(row in self.place for row in rows),
        }

    def _instruction(self, row: int, computation: int, one: Any) -> dict[str, Any]:
        called = [self.computation_of.get(number) for number in one.called_computation_ids]
        names = [self.module.computations[n].name for n in called if n is not None]
        stack = one.metadata.stack_frame_id
        if not 0 < stack <= len(self.module.stack_frame_index.stack_frames):
            stack = 0
        file, line = one.metadata.source_file, one.metadata.source_line
        if not file:
            file, line = _own(self._stack(stack))
        return {
            "instruction_id": row, "computation_id": computation, "native_id": one.id,
            "name": one.name, "opcode": one.opcode, "category": self._category(computation, one),
            "fusion_kind": one.fusion_kind or None,
            "called": ",".join(names) if names else None,
            "target": one.custom_call_target or None,
            "op_name": one.metadata.op_name or None,
            "op_type": one.metadata.op_type or None,
            "source_file": file or None,
            "source_line": line if file else None,
            "stack_id": stack - 1 if stack else None,
            "shape": text_of(one.shape),
            "layout": layout_of(one.shape),
            "bytes": bytes_of(one.shape),
            "parameter_number": one.parameter_number if one.opcode == "parameter" else None,
            "tuple_index": one.tuple_index if one.opcode == "get-tuple-element" else None,
            "is_root": row
            == self.row_of.get((computation, self.module.computations[computation].root_id)),
            "schedule_index": self.place.get(row),
        }  # fmt: skip

    def _category(self, computation: int, one: Any) -> str:
        opcode = one.opcode
        if opcode == "fusion":
            kinds = {"kLoop": "loop ", "kInput": "input ", "kOutput": "output ",
                     "kCustom": "custom "}  # fmt: skip
            return kinds.get(one.fusion_kind, "") + "fusion"
        if opcode == "convolution":
            spread = [
                text
                for field, text in (
                    ("base_dilation", " base-dilated"), ("window_dilation", " window-dilated"),
                )
                if any(getattr(size, field) > 1 for size in one.window.dimensions)
            ]  # fmt: skip
            return opcode + "".join(spread)
        if opcode in ("transpose", "copy", "reshape", "dynamic-reshape"):
            return "data formatting"
        if opcode == "bitcast-convert" and one.operand_ids:
            operand = self.row_of.get((computation, one.operand_ids[0]))
            if operand is not None:
                other = self.instructions[operand][2].shape
                if len(other.dimensions) != len(one.shape.dimensions):
                    return opcode
        return "non-fusion elementwise" if opcode in _PER_ELEMENT else opcode

    def _operands(self) -> Rows:
        result = []
        for row, computation, one in self.instructions:
            for numbers, is_control in (
                (one.operand_ids, False), (one.control_predecessor_ids, True)
            ):  # fmt: skip
                for place, number in enumerate(numbers):
                    operand = self.row_of.get((computation, number))
                    self.losses["hlo_reference"] += operand is None
                    if operand is not None:
                        result.append({
                            "instruction_id": row, "place": place, "operand_id": operand,
                            "is_control": is_control,
                        })  # fmt: skip
        return result

    def _calls(self) -> Rows:
        result = []
        for row, _, one in self.instructions:
            for place, number in enumerate(one.called_computation_ids):
                called = self.computation_of.get(number)
                self.losses["hlo_reference"] += called is None
                if called is not None:
                    result.append({
                        "instruction_id": row, "place": place, "computation_id": called,
                    })  # fmt: skip
        return result

    def _stack(self, number: int) -> list[tuple[str, str, int]]:
        """Function, file and line of the frames of a stack, innermost first."""
        index, result, steps = self.module.stack_frame_index, [], 0
        while 0 < number <= len(index.stack_frames) and steps < 1000:
            frame, steps = index.stack_frames[number - 1], steps + 1
            if 0 < frame.file_location_id <= len(index.file_locations):
                place = index.file_locations[frame.file_location_id - 1]
                result.append((
                    _named(index.function_names, place.function_name_id),
                    _named(index.file_names, place.file_name_id),
                    place.line,
                ))  # fmt: skip
            number = frame.parent_frame_id
        return result

    def _frames(self) -> Rows:
        count = len(self.module.stack_frame_index.stack_frames)
        named = {one.metadata.stack_frame_id for _, _, one in self.instructions}
        return [
            {"stack_id": number - 1, "depth": depth, "function": function, "file": file,
             "line": line}
            for number in sorted(named)
            if 0 < number <= count
            for depth, (function, file, line) in enumerate(self._stack(number))
        ]  # fmt: skip


def _named(texts: Any, number: int) -> str:
    return texts[number - 1] if 0 < number <= len(texts) else ""


def _own(frames: list[tuple[str, str, int]]) -> tuple[str, int]:
    """File and line of the innermost frame outside of libraries."""
    python = [frame for frame in frames if _PYTHON.search(frame[1])]
    own = [frame for frame in python if not _LIBRARIES.search(frame[1])]
    for frame in own or python or frames:
        return frame[1], frame[2]
    return "", 0
