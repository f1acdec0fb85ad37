"""What the compiled programs say of a table of ops: the text of an instruction, the line it was
made for, the parts of a fusion.

Sources: ``utils/hlo_module_map.cc``, ``hlo_module_utils.cc`` and ``op_utils.cc`` of openxla/xprof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from peakline.formats.hlo_proto.stack_index import StackIndex
from peakline.hlo.modules import Module, category_of
from peakline.hlo.printing.module import InstructionLines
from peakline.tables import Profile
from peakline.text import whole_number
from peakline.timing.ops.metrics import OpFacts, OpMetrics, OpTable, Source
from peakline.timing.ops.sparse_core import SPARSE_CORE
from peakline.timing.programs.device import Programs

if TYPE_CHECKING:
    from peakline.schema import HloInstructionProto

_LEFT_OUT = ("parameter", "tuple")
_DEEPEST, _MOST_PARTS = 16, 200_000


def described_table(
    profile: Profile, table: OpTable, programs: Programs, *, is_tpu: bool
) -> OpTable:
    """A table of ops with all that their programs say of them."""
    read = _Programs(profile, programs)
    describe = read.tpu_op if is_tpu else read.instruction
    return replace(table, ops={key: describe(op) for key, op in table.ops.items()})


class _Programs:
    """The programs by their ids, read when an op of theirs comes."""

    def __init__(self, profile: Profile, programs: Programs) -> None:
        self._profile, self._known = profile, programs
        self._programs: dict[int, _Program] = {}
        self._left = [_MOST_PARTS]

    def _of(self, op: OpMetrics) -> _Program:
        if op.program not in self._programs:
            self._programs[op.program] = _Program(self._known.module(op.program))
        return self._programs[op.program]

    def instruction(self, op: OpMetrics) -> OpMetrics:
        """An op with what its instruction says."""
        return op if op.is_idle else replace(op, facts=self._of(op).described(op.name, op.facts))

    def tpu_op(self, op: OpMetrics) -> OpMetrics:
        """An op, and what SparseCores did for it, with the parts of their instructions."""
        inner = tuple(
            self.tpu_op(part) if part.facts.core == SPARSE_CORE else part
            for part in op.facts.children or ()
        )
        parts = self._of(op).parts(op.name, self._left, self._profile.warn)
        children = (*inner, *parts) if parts else op.facts.children and inner
        return replace(op, facts=replace(op.facts, children=children))


class _Program:
    """One compiled program; without a module one of nothing."""

    def __init__(self, module: Module | None) -> None:
        self._stacks = self._texts = None
        if module is None:
            return
        self._stacks, index = StackIndex.of(module.data), module.index
        if index is not None and (parts := module.parts()) is not None:
            self._texts = InstructionLines(parts, index)

    def described(self, name: str, facts: OpFacts) -> OpFacts:
        """What a GPU's op is by its instruction; nothing is known of the line of any other."""
        made = None if self._texts is None else self._texts.find(name)
        if self._texts is None or made is None:
            return replace(facts, source=Source("", -1))
        return replace(
            facts, long_name=self._texts.text(name),
            deduplicated_name=made.metadata.deduplicated_name, source=self._source(made),
        )  # fmt: skip

    def _source(self, made: HloInstructionProto) -> Source:
        stack = self._stack(made.metadata.stack_frame_id)
        if made.metadata.source_file:
            return Source(made.metadata.source_file, made.metadata.source_line, stack)
        file, _, rest = stack.partition("\n")[0].partition(":")
        line = rest.partition(":")[0]
        if not stack or not rest:
            return Source("", -1)
        number = whole_number(line)
        return Source(file, -1 if number is None else number, stack)

    def _stack(self, number: int) -> str:
        """The calls that led to an instruction, the innermost first."""
        lines: list[str] = []
        for place in self._stacks.calls(number) if self._stacks else ():
            if place is None or not place.file:
                break
            lines.append(f"{place.file}:{place.line}:{place.column}\n")
        return "".join(lines)

    def parts(
        self, name: str, left: list[int], warn: Callable[[str, str], object], depth: int = 0
    ) -> tuple[OpMetrics, ...]:
        """The instructions of a fusion, and theirs; too deep, or too many, are left out."""
        texts = self._texts
        if texts is None:
            return ()
        listed = texts.parts(name)
        if listed and (depth == _DEEPEST or left[0] <= 0):
            warn("op_parts", "parts of ops that hold themselves, or are too many or too deep")
            return ()
        shapes = {made.id: made.shape for made in listed}
        result = []
        for made in listed:
            if made.opcode in _LEFT_OUT:
                continue
            left[0] -= 1
            meta = made.metadata
            inner = self.parts(made.name, left, warn, depth + 1) if made.opcode == "fusion" else ()
            facts = OpFacts(
                category_of(made, shapes), texts.text(made.name), meta.deduplicated_name,
                children=inner or None,
            )  # fmt: skip
            provenance = f"{meta.op_name}:{meta.op_type}"
            result.append(OpMetrics(made.name, "", provenance, occurrences=1, facts=facts))
        return tuple(result)
