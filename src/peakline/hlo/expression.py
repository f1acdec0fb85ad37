"""An instruction as XLA writes it in one line: result, opcode, operands with shapes, attributes.

The form is that of ``HloInstruction::ToString`` (``xla/hlo/ir/hlo_instruction.cc`` in openxla/xla)
without metadata and the configuration of the back end, which is how XProf shows an op's text
(``utils/hlo_module_utils.h`` in openxla/xprof). Programs come from files: what names nothing is
left out, and nothing in them makes this fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from peakline.hlo.attributes import attributes
from peakline.hlo.braces import braced
from peakline.hlo.literals import constant_text
from peakline.hlo.shape_texts import layout_shape
from peakline.hlo.shardings import sharding_text

if TYPE_CHECKING:
    from peakline.schema import HloComputationProto, HloInstructionProto, HloModuleProto

_INTERVAL = 5
_LONGEST = 1_000_000
_TO_APPLY = frozenset(
    "map reduce-window reduce all-reduce reduce-scatter all-reduce-start scatter topk sort "
    "call".split()
)
_ASYNC = {"async-start": "-start", "async-update": "-update", "async-done": "-done"}


class Expressions:
    """The texts of a program's instructions."""

    def __init__(self, module: HloModuleProto) -> None:
        self._computations = {one.id: one for one in module.computations}
        self._of: dict[str, tuple[HloInstructionProto, HloComputationProto]] = {}
        for computation in module.computations:
            for made in computation.instructions:
                self._of.setdefault(made.name, (made, computation))
        self._by_id: dict[int, dict[int, HloInstructionProto]] = {}

    def find(self, name: str) -> HloInstructionProto | None:
        """The instruction of a name; of several the first."""
        found = self._of.get(name)
        return None if found is None else found[0]

    def text(self, name: str) -> str:
        """An instruction in one line; empty for a name that there is not."""
        if name not in self._of:
            return ""
        made, computation = self._of[name]
        opcode, shown = self._unwrapped(made)
        head = f"%{made.name} = {layout_shape(made.shape)} {opcode}("
        tail = [*attributes(shown), *self._calls(made, shown), *self._more(made, computation)]
        text = head + self._operands(made, computation) + ")" + "".join(f", {one}" for one in tail)
        return text[:_LONGEST]

    def parts(self, name: str) -> Iterator[HloInstructionProto]:
        """The instructions that a fusion consists of."""
        made = self.find(name)
        if made is not None and made.opcode == "fusion" and made.called_computation_ids:
            called = self._computations.get(made.called_computation_ids[0])
            yield from () if called is None else called.instructions

    def _unwrapped(self, made: HloInstructionProto) -> tuple[str, HloInstructionProto]:
        """The opcode as it is written, and the instruction whose attributes are: an asynchronous
        one that wraps a single instruction is written as that.
        """
        inner = self._wrapped(made)
        if inner is None:
            return made.opcode, made
        return inner.opcode + _ASYNC[made.opcode], inner

    def _wrapped(self, made: HloInstructionProto) -> HloInstructionProto | None:
        if made.opcode not in _ASYNC or not made.called_computation_ids:
            return None
        called = self._computations.get(made.called_computation_ids[0])
        if called is None:
            return None
        work = [one for one in called.instructions if one.opcode != "parameter"]
        return work[0] if len(work) == 1 and called.root_id == work[0].id else None

    def _operands(self, made: HloInstructionProto, computation: HloComputationProto) -> str:
        if made.opcode == "constant":
            return constant_text(made)
        if made.opcode == "parameter":
            return str(made.parameter_number)
        ids = self._ids(computation)
        texts = []
        for place, number in enumerate(made.operand_ids):
            index = f"/*index={place}*/" if place and place % _INTERVAL == 0 else ""
            if number in ids:
                texts.append(f"{index}{layout_shape(ids[number].shape)} %{ids[number].name}")
        return ", ".join(texts)

    def _ids(self, computation: HloComputationProto) -> dict[int, HloInstructionProto]:
        if computation.id not in self._by_id:
            self._by_id[computation.id] = {made.id: made for made in computation.instructions}
        return self._by_id[computation.id]

    def _names(self, made: HloInstructionProto) -> list[str]:
        called = map(self._computations.get, made.called_computation_ids)
        return [f"%{one.name}" for one in called if one is not None]

    def _calls(self, made: HloInstructionProto, shown: HloInstructionProto) -> Iterator[str]:
        names = self._names(shown)
        if not names:
            return
        match shown.opcode:
            case "while" if len(names) > 1:
                yield f"condition={names[1]}"
                yield f"body={names[0]}"
            case "select-and-scatter" if len(names) > 1:
                yield f"select={names[0]}"
                yield f"scatter={names[1]}"
            case "conditional":
                if self._is_on_truth(made) and len(names) > 1:
                    yield f"true_computation={names[0]}"
                    yield f"false_computation={names[1]}"
                else:
                    yield f"branch_computations={braced(names, ', ')}"
            case "custom-call":
                yield f"called_computations={braced(names, ', ')}"
            case "async-update" | "async-done":
                return
            case opcode if opcode in _TO_APPLY:
                yield f"to_apply={names[0]}"
            case _:
                yield f"calls={', '.join(names)}"

    def _is_on_truth(self, made: HloInstructionProto) -> bool:
        computation = self._of[made.name][1]
        ids = self._ids(computation)
        first = ids.get(made.operand_ids[0]) if made.operand_ids else None
        return first is not None and first.shape.element_type == _truth()

    def _more(self, made: HloInstructionProto, computation: HloComputationProto) -> Iterator[str]:
        if made.HasField("sharding"):
            yield f"sharding={sharding_text(made.sharding)}"
        if made.HasField("frontend_attributes") and made.frontend_attributes.map:
            pairs = sorted(made.frontend_attributes.map.items())
            yield "frontend_attributes=" + braced([_attribute(*pair) for pair in pairs], ",")
        ids = self._ids(computation)
        before = [f"%{ids[one].name}" for one in made.control_predecessor_ids if one in ids]
        if before:
            yield f"control-predecessors={braced(before, ', ')}"


def _attribute(name: str, value: str) -> str:
    return f"{name}={value}" if value.startswith("{") else f'{name}="{value}"'


@cache
def _truth() -> int:
    from peakline.schema import PrimitiveType

    return PrimitiveType.Value("PRED")
