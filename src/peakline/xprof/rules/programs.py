"""The compiled programs of a profile as XProf knows them: those that XLA takes back from their
messages (``HloModule::CreateFromProto``), with the costs that it counts; and which of them a
question means (``convert/xplane_to_hlo.cc``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.errors import NotFoundError, UsageError
from peakline.formats.hlo_proto.categories import ELEMENTWISE
from peakline.hlo.cost import NOTHING, Cost, costs_of
from peakline.hlo.messages import read_module
from peakline.hlo.modules import Module
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.tables.programs import Programs as StoredPrograms
from peakline.timing.programs.device import DeviceOp, Programs
from peakline.xprof.rules.hlo_cost import GpuCosting

if TYPE_CHECKING:
    from peakline.hlo.messages import ModuleParts
    from peakline.schema import HloComputationProto


def find_program(profile: Profile, module_name: str, program_id: str, node_name: str = "") -> int:
    """The number of a program: the one whose name with its id is ``module_name``; else the first
    whose name with its id contains ``program_id``; else the first with an instruction
    ``node_name``.

    XProf has the programs as files, and takes the first that the file system lists; here it is the
    first of the profile. Raises NotFoundError where there is none, UsageError where nothing is
    named.
    """
    programs = profile.programs()
    count = len(programs) if programs is not None else 0
    if programs is None or not (module_name or program_id or node_name):
        raise UsageError(f"{profile.path}: no program named: say module_name or program_id")
    labels = [programs.label(number) for number in range(count)]
    if module_name:
        result = [number for number, label in enumerate(labels) if label == module_name]
    else:
        result = [
            number for number, label in enumerate(labels) if program_id and program_id in label
        ]
    if not result and node_name:
        result = _with_node(programs, node_name)
    if not result:
        wanted = module_name or program_id or node_name
        raise NotFoundError(f"{profile.path}: no program for {wanted!r}").quoting(repr(wanted))
    return result[0]


def _with_node(programs: StoredPrograms, name: str) -> list[int]:
    for number in range(len(programs)):
        parts = read_module(programs.data(number))
        if parts is not None and any(
            made.name == name
            for computation in parts.computations
            for made in computation.instructions
        ):
            return [number]
    return []


_OPCODES = ELEMENTWISE | frozenset(
    """
    add-dependency after-all all-gather all-gather-done all-gather-start all-reduce all-reduce-done
    all-reduce-start all-to-all async-done async-start async-update batch-norm-grad
    batch-norm-inference batch-norm-training bitcast broadcast call cholesky collective-broadcast
    collective-permute collective-permute-done collective-permute-start concatenate conditional
    constant convolution copy-done copy-start custom-call domain dot dynamic-reshape dynamic-slice
    dynamic-update-slice fft fusion gather get-dimension-size get-tuple-element infeed iota
    opt-barrier outfeed pad parameter partition-id ragged-all-to-all ragged-dot recv recv-done
    reduce reduce-scatter reduce-window replica-id reshape reverse rng-bit-generator
    rng-get-and-update-state scaled-dot scan scatter select-and-scatter send send-done
    set-dimension-size slice sort topk transpose triangular-solve tuple while
    """.split()
)


class XprofPrograms(Programs):
    """Those that XLA takes, with XProf's costs; an instruction of another is no op."""

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self._costs: dict[int, dict[str, Cost]] = {}

    def takes(self, module: Module) -> bool:
        """Whether XLA takes a program."""
        parts = module.parts()
        return parts is not None and is_sound(parts)

    def module_cost(self, module: Module, name: str) -> Cost:
        """What one run of an instruction of a program costs by XProf's rule."""
        if module.number not in self._costs:
            self._costs[module.number] = costs_of(module.data.tobytes(), GpuCosting)
        return self._costs[module.number].get(name, NOTHING)

    def op(self, program: int, name: str, flops: int, moved: int) -> DeviceOp | None:
        """The op that an instruction is; None where its program is not there."""
        made = self.find(program, name)
        return None if made is None else self.known_op(program, made, flops, moved)


@once
def xprof_programs(profile: Profile) -> XprofPrograms:
    """Those of a profile, made once."""
    return XprofPrograms(profile)


def is_sound(parts: ModuleParts) -> bool:
    """Whether XProf 2.24.2 knows a program: it leaves out what XLA refuses.

    Instructions and computations must stand behind what they use, under names and ids of their
    own, and be of kinds that XLA has; the shape of the whole must be said.
    """
    known: set[int] = set()
    names: set[str] = set()
    count = 0
    for computation in parts.computations:
        if computation.id in known or not _holds(computation, known):
            return False
        known.add(computation.id)
        names.update(made.name for made in computation.instructions)
        count += len(computation.instructions)
    has_shape = (
        parts.head.HasField("host_program_shape") and parts.head.entry_computation_id in known
    )
    return has_shape and len(names) == count


def _holds(computation: HloComputationProto, known: set[int]) -> bool:
    seen: set[int] = set()
    parameters: list[int] = []
    for made in computation.instructions:
        if (
            made.opcode not in _OPCODES
            or made.id in seen
            or not made.HasField("shape")
            or not seen.issuperset((*made.operand_ids, *made.control_predecessor_ids))
            or not known.issuperset(made.called_computation_ids)
        ):
            return False
        seen.add(made.id)
        if made.opcode == "parameter":
            parameters.append(made.parameter_number)
    return computation.root_id in seen and sorted(parameters) == list(range(len(parameters)))
