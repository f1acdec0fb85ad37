"""A step database as data: steps, the cores they ran on, and what the time of each went to.

The shape is that of XProf's ``StepDatabaseResult`` (``plugin/xprof/protobuf/steps_db.proto`` of
openxla/xprof). Times are ps; everything can be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from peakline.timing.steps.work import Work
from peakline.xprof.rules.step_kinds import SpanKind

GENERIC_CORE = 1
"""The core that stands for a host and its GPUs together."""
FIRST_SPARSE_CORE = 1_000_000
"""SparseCores are counted from here."""
CORES_PER_HOST = 1000
"""The cores of host ``n`` of several are counted from n times this."""
CPU, GPU, TPU = "CPU_ONLY", "GPU", "TPU"
IDLE = "IDLE"
"""The category of a TPU core's time without an op."""


@dataclass(frozen=True)
class Collective:
    """A collective operation on a core, by the number that all its cores share, and how long."""

    id: int
    duration_ps: int


@dataclass(frozen=True)
class CoreStep:
    """One step on one core: its window, and what its time went to.

    ``kinds`` has the time per `SpanKind` of hosts and GPUs (they add up to ``duration_ps``
    where no span sticks out), ``categories`` the self time per HLO category of a TPU's core, with
    what is left as ``IDLE``; the other one is empty. ``name`` is empty where the step's name is
    its number. ``work`` is what the ops of a TensorCore did.
    """

    begin_ps: int
    duration_ps: int
    name: str = ""
    kinds: Mapping[SpanKind, int] = field(default_factory=dict)
    categories: Mapping[str, int] = field(default_factory=dict)
    work: Work | None = None


@dataclass(frozen=True)
class Step:
    """One step on all cores, by number of the core."""

    number: int
    cores: Mapping[int, CoreStep]
    collectives: Mapping[int, Sequence[Collective]] = field(default_factory=dict)

    @property
    def window(self) -> tuple[int, int]:
        """From the first core's begin to the last one's end; (0, 0) without cores."""
        if not self.cores:
            return 0, 0
        begin = min(core.begin_ps for core in self.cores.values())
        return begin, max(core.begin_ps + core.duration_ps for core in self.cores.values())


@dataclass(frozen=True)
class CoreDetails:
    """Where a core is: its host's name and its number there."""

    host: str
    device_ordinal: int = 0
    is_sparse_core: bool = False


@dataclass(frozen=True)
class HostSteps:
    """What one host contributes.

    ``hardware`` is CPU_ONLY, GPU or TPU, as the planes of the file say; ``device_type`` the
    device's name. ``precision_ps`` is how long GPUs computed with 16 and with 32 bits, steps'
    windows or not.
    """

    hardware: str
    device_type: str
    steps: tuple[Step, ...]
    core_details: Mapping[int, CoreDetails] = field(default_factory=dict)
    precision_ps: tuple[int, int] = (0, 0)

    @property
    def has_accelerator(self) -> bool:
        """Whether its device's name is that of an accelerator, as upstream reads it."""
        return "GPU" in self.device_type or "TPU" in self.device_type


@dataclass(frozen=True)
class StepDatabase:
    """The steps of all hosts together.

    ``empty_intersection``: there were steps, and none that all hosts have.
    """

    hardware: str
    steps: tuple[Step, ...]
    core_details: Mapping[int, CoreDetails]
    empty_intersection: bool = False
