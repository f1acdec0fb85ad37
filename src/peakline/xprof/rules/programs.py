"""The compiled programs of a profile as XProf knows them."""

from __future__ import annotations

from peakline.hlo.cost import Cost, costs_of
from peakline.hlo.modules import Module, parse_program
from peakline.timing.device_programs import DeviceOp, Programs
from peakline.xprof.rules.hlo_cost import GpuCosting
from peakline.xprof.rules.hlo_sound import is_sound

__all__ = ["XprofPrograms"]


class XprofPrograms(Programs):
    """Those that XLA takes, with XProf's costs; an instruction of another is no op."""

    def takes(self, module: Module) -> bool:
        """Whether XLA takes a program."""
        proto = parse_program(module.data)
        return proto is not None and is_sound(proto.hlo_module)

    def costs(self, module: Module) -> dict[str, Cost]:
        """The cost of every instruction of a program by XProf's rule, by name."""
        return costs_of(module.data, GpuCosting)

    def op(self, program: int, name: str, flops: int, moved: int) -> DeviceOp | None:
        """The op that an instruction is; None where its program is not there."""
        made = self.find(program, name)
        return None if made is None else self.known_op(program, made, flops, moved)
