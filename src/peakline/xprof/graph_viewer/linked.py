"""A program as XLA holds it: instructions tied to operands, users and what they call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.hlo.printing.outline import called, local
from peakline.hlo.printing.quoting import sound_name

if TYPE_CHECKING:
    from peakline.schema import HloComputationProto, HloInstructionProto, HloModuleProto


class Computation:
    """A computation; ``fusion`` is the last instruction that fuses it, ``callers`` are all that
    call it.
    """

    __slots__ = ("callers", "fusion", "made", "name", "proto", "root")

    def __init__(self, proto: HloComputationProto) -> None:
        self.proto = proto
        self.name = sound_name(proto.name)
        self.made: list[Instruction] = []
        self.callers: list[Instruction] = []
        self.fusion: Instruction | None = None
        self.root: Instruction


class Instruction:
    """An instruction; of its users each is there once."""

    __slots__ = ("calls", "controls", "name", "opcode", "operands", "parent", "proto", "users")

    def __init__(self, proto: HloInstructionProto, parent: Computation) -> None:
        self.proto = proto
        self.parent = parent
        self.name = sound_name(proto.name)
        self.opcode: str = proto.opcode
        self.operands: list[Instruction] = []
        self.controls: list[Instruction] = []
        self.users: list[Instruction] = []
        self.calls: list[Computation] = []

    @property
    def fused_by(self) -> Instruction | None:
        """The fusion that it is part of."""
        return self.parent.fusion


def link(module: HloModuleProto) -> list[Computation]:
    """The computations in the order of their ids; the program must be one that XLA takes."""
    by_id = {one.id: Computation(one) for one in module.computations}
    for computation in by_id.values():
        made = {
            local(one.id): Instruction(one, computation) for one in computation.proto.instructions
        }
        computation.made = list(made.values())
        computation.root = made[local(computation.proto.root_id)]
        for each in computation.made:
            each.operands = [made[local(number)] for number in each.proto.operand_ids]
            for operand in dict.fromkeys(each.operands):
                operand.users.append(each)
            each.controls = [made[local(number)] for number in each.proto.control_predecessor_ids]
            each.calls = [by_id[number] for number in called(each.proto)]
            for callee in each.calls:
                callee.callers.append(each)
                if each.opcode == "fusion":
                    callee.fusion = each
    return [by_id[number] for number in sorted(by_id)]
