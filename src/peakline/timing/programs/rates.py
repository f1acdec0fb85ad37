"""How fast ops were against what the device can do (``convert/op_metrics_to_record.h`` in
openxla/xprof).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peakline.timing.ops.metrics import CMEM, HBM, READ, VMEM, WRITE, OpMetrics

GIBI = (1 << 30) / 1e9
_LEAST = 1e-10
GPU, TPU = "GPU", "TPU"
_HBM, _SHARED, CMEM_READ, CMEM_WRITE, _VMEM_READ, _VMEM_WRITE = 0, 2, 3, 4, 5, 6


def ratio(one: float, other: float) -> float:
    """A quotient, 0 where there is next to nothing to divide by."""
    return one / other if abs(other) >= _LEAST else 0.0


def gibi(gigabytes: float) -> float:
    """10^9 bytes as 2^30 bytes."""
    return gigabytes / GIBI


@dataclass(frozen=True)
class PeakRates:
    """What one device can do: 10^9 operations per second, and 10^9 bytes per second by kind of
    memory: main memory, SRAM read and written (of GPUs what a block's threads share), CMEM read
    and written, VMEM read and written.
    """

    gigaflops: float = 0.0
    bandwidths: tuple[float, ...] = ()
    has_cmem: bool = False
    has_merged_vmem: bool = False
    has_megacore: bool = False

    def bandwidth(self, kind: int) -> float:
        """The bandwidth of a kind of memory, 0 where it is not known."""
        return self.bandwidths[kind] if kind < len(self.bandwidths) else 0.0


def combine_peak_rates(hosts: Sequence[PeakRates]) -> PeakRates:
    """Those of several hosts; what kinds of memory a TPU has is known of one alone."""
    if len(hosts) == 1:
        return hosts[0]
    flops = [host.gigaflops for host in hosts if host.gigaflops > 0]
    bandwidths = [host.bandwidths for host in hosts if host.bandwidths]
    return PeakRates(flops[-1] if flops else 0.0, bandwidths[0] if bandwidths else ())


@dataclass(frozen=True)
class Rates:
    """How fast an op was: GFLOP/s, GiB/s by kind of memory, FLOPs per byte, and what bounds it."""

    bound_by: str
    flops: float
    model_flops: float
    memory: float
    hbm: float
    cmem_read: float
    cmem_write: float
    vmem_read: float
    vmem_write: float
    intensity: float
    hbm_intensity: float
    cmem_read_intensity: float
    cmem_write_intensity: float
    vmem_read_intensity: float
    vmem_write_intensity: float
    bottleneck_intensity: float


def rates_of(op: OpMetrics, peaks: PeakRates, hardware: str) -> Rates:
    """The rates of an op over its whole time, that of what lay in it too."""
    nanoseconds = op.total_ps / 1e3
    flops, model = ratio(op.flops, nanoseconds), ratio(op.model_flops, nanoseconds)
    hbm = sum(size for (space, _), size in op.moved.items() if space == HBM)
    if not op.moved:
        hbm = op.bytes_accessed
    chip = [(space, way) for space in (CMEM, VMEM) for way in (READ, WRITE)]
    parts = [hbm, *(op.moved.get(place, 0) for place in chip)]
    moving = (op.span_ps or op.total_ps) / 1e3
    speeds = [gibi(ratio(size, moving)) for size in parts]
    intensities = [ratio(op.flops, size) for size in parts]
    whole = ratio(op.flops, op.bytes_accessed)
    uses = [
        ("Compute", ratio(flops, peaks.gigaflops), whole),
        ("HBM", ratio(speeds[0], gibi(peaks.bandwidth(_HBM))), intensities[0]),
    ]
    if hardware == TPU:
        kinds = (CMEM_READ, CMEM_WRITE, _VMEM_READ, _VMEM_WRITE)
        names = ("CMEM Read", "CMEM Write", "VMEM Read", "VMEM Write")
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True), 1):
            if parts[place] and peaks.bandwidth(kind):
                use = ratio(speeds[place], gibi(peaks.bandwidth(kind)))
                uses.append((name, use, intensities[place]))
    if hardware == GPU and peaks.bandwidth(_SHARED):
        use = ratio(speeds[0], gibi(peaks.bandwidth(_SHARED)))
        uses.append(("Shm/L1", use, intensities[0]))
    bound_by, most, bottleneck = "Unknown", 0.0, 0.0
    for name, use, intensity in uses:
        if use > most:
            bound_by, most, bottleneck = name, use, intensity
    memory = gibi(ratio(op.bytes_accessed, moving))
    numbers = (flops, model, memory, *speeds, whole, *intensities, bottleneck)
    return Rates(bound_by, *numbers)
