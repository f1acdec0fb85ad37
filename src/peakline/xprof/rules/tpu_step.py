"""One step of TPUs across all cores: compute, infeed, outfeed, idle, collectives.

Source of the rules: ``ComputeTpuPerStepDataAcrossCores`` of
``convert/op_stats_to_input_pipeline_analysis.cc``, and ``convert/profile_time_breakdown.h``, in
openxla/xprof. Times are ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from peakline.xprof.rules.step_model import FIRST_SPARSE_CORE, IDLE, CoreDetails, CoreStep, Step

_MODULUS = 2**64
LEAST = 2.2250738585072014e-308
"""What upstream's statistics start the search for a maximum from."""
_TRANSFERS = ("host send", "host send-done", "host recv", "host recv-done")
OFF_DUTY = frozenset(("infeed", "outfeed", *_TRANSFERS, "megacore fusion"))
"""Categories of ops in which a core waits for somebody else; of a megacore fusion only what it
calls is work."""


@dataclass(frozen=True)
class TpuCore:
    """What a TensorCore's step went to, in ps modulo 2^64, as XProf counts them."""

    duration_ps: int
    infeed_ps: int
    outfeed_ps: int
    transfer_ps: int
    sparse_wait_ps: int
    idle_ps: int
    busy_ps: int

    @property
    def optimal_ps(self) -> int:
        """How long it would take without waiting for the host or a SparseCore V0."""
        waits = self.infeed_ps + self.outfeed_ps + self.transfer_ps + self.idle_ps
        return (self.duration_ps - waits - self.sparse_wait_ps) % _MODULUS


@dataclass(frozen=True)
class TpuStep:
    """A step: the times of the slowest or the average core, as the field asks for.

    ``number`` is -1 where no core ran it. ``slowest_infeed`` names the core with the longest
    infeed, ``host:ordinal``; empty where that is not known.
    """

    number: int
    compute_ms: float = 0.0
    infeed_ms: float = 0.0
    outfeed_ms: float = 0.0
    idle_ms: float = 0.0
    busy_ms: float = 0.0
    host_transfer_ms: float = 0.0
    sparse_compute_ms: float = 0.0
    sparse_infeed_ms: float = 0.0
    infeed_percent: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Average, least and most over the cores."""
    all_reduce_ms: float = 0.0
    """The longest collectives of a core, which its compute time holds too."""
    sc_compute_ms: float = 0.0
    sc_idle_ms: float = 0.0
    sc_step_ms: float = 0.0
    sc_active_ms: float = 0.0
    active_ms: float = 0.0
    """How long TensorCores or SparseCores were busy, whichever was longer."""
    slowest_infeed: str = ""

    @property
    def input_ms(self) -> float:
        """Waiting for input, on a TensorCore or a SparseCore V0."""
        return self.infeed_ms + self.sparse_infeed_ms

    @property
    def non_idle_ms(self) -> float:
        """All that is known but idle."""
        compute = self.compute_ms + self.sparse_compute_ms
        return compute + self.input_ms + self.outfeed_ms

    @property
    def step_ms(self) -> float:
        """The step's time."""
        return self.non_idle_ms + self.idle_ms


def tpu_core(core: CoreStep) -> TpuCore:
    """What the step of a TensorCore went to, from its categories."""
    spent = {name: ps for name, ps in core.categories.items() if name != IDLE}
    idle = core.duration_ps - sum(spent.values())
    infeed, outfeed = spent.get("infeed", 0), spent.get("outfeed", 0)
    transfer = sum(spent.get(name, 0) for name in _TRANSFERS)
    from_sparse, to_sparse = (spent.get(f"sparsecorev0 {way}", 0) for way in ("infeed", "outfeed"))
    wait = from_sparse - min(from_sparse, to_sparse)
    off = idle + infeed + outfeed + transfer + spent.get("megacore fusion", 0)
    busy = core.duration_ps - off - wait
    parts = (core.duration_ps, infeed, outfeed, transfer, wait, idle, busy)
    return TpuCore(*(part % _MODULUS for part in parts))


def tpu_step(step: Step, details: Mapping[int, CoreDetails]) -> TpuStep:
    """One step over its cores; the compute time is that of the core that had least to do."""
    tensor = {n: tpu_core(core) for n, core in step.cores.items() if n < FIRST_SPARSE_CORE}
    sparse = [core for n, core in step.cores.items() if n >= FIRST_SPARSE_CORE]
    number = step.number if step.cores else -1
    found: dict[str, float | str | tuple[float, float, float]] = {}
    if sparse:
        lengths = [core.duration_ps for core in sparse]
        idles = [core.categories.get(IDLE, 0) % _MODULUS for core in sparse]
        computes = [(a - b) % _MODULUS for a, b in zip(lengths, idles, strict=True)]
        found["sc_step_ms"] = _ms(sum(lengths) // len(sparse))
        found["sc_idle_ms"] = _ms(sum(idles) % _MODULUS // len(sparse))
        found["sc_compute_ms"] = _ms(min(computes))
        found["sc_active_ms"] = _ms(sum(computes) % _MODULUS // len(sparse))
    if not tensor:
        return TpuStep(number)
    cores = list(tensor.values())
    slowest = max(tensor, key=lambda n: tensor[n].infeed_ps)
    if tensor[slowest].infeed_ps and slowest in details:
        found["slowest_infeed"] = f"{details[slowest].host}:{details[slowest].device_ordinal}"
    percent = [100.0 * core.infeed_ps / core.duration_ps for core in cores]
    shown = TpuStep(
        number,
        compute_ms=_ms(min(core.optimal_ps for core in cores)),
        infeed_ms=_ms(tensor[slowest].infeed_ps),
        outfeed_ms=_ms(sum(core.outfeed_ps for core in cores) % _MODULUS // len(cores)),
        busy_ms=_ms(sum(core.busy_ps for core in cores) % _MODULUS // len(cores)),
        host_transfer_ms=_ms(max(core.transfer_ps for core in cores)),
        sparse_compute_ms=_ms(max(core.sparse_wait_ps for core in cores)),
        all_reduce_ms=_ms(_longest_collectives(step)),
        infeed_percent=(sum(percent) / len(percent), min(percent), max(*percent, LEAST)),
        **found,  # type: ignore[arg-type]
    )
    active = max(shown.busy_ms, shown.sc_active_ms)
    idle = _ms(min(core.duration_ps for core in cores)) - shown.non_idle_ms
    return replace(shown, idle_ms=max(idle, 0.0), active_ms=active)


def _longest_collectives(step: Step) -> int:
    lengths = [
        sum(one.duration_ps for one in own)
        for number, own in step.collectives.items()
        if number in step.cores and number < FIRST_SPARSE_CORE
    ]
    return max(lengths, default=0)


def _ms(ps: float) -> float:
    return ps / 1e9
