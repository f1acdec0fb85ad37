"""How fast the devices of a profile could be.

The numbers per core and clock cycle are the makers' own, as XProf has them
(``xprof/utils/cuda_type_utils.cc``, ``rocm_type_utils.cc``, ``convert/xplane_to_op_stats.cc``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.timing.plane_stats import plane_stats_of
from peakline.trace.events import trace_of
from peakline.xprof.rules.run_environment import run_environment_of

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["Peaks", "combine_peaks", "peaks_of"]

# Operations of the fastest unit for 32 or 16 bits, per multiprocessor and cycle.
_NVIDIA_FLOPS = {
    (10, 0): 8192, (9, 0): 4096, (8, 9): 1024, (8, 6): 1024, (8, 0): 2048, (7, 5): 1024,
    (7, 0): 1024, (6, 1): 256, (6, 0): 256, (5, 0): 256, (3, 0): 384, (2, 0): 64,
}  # fmt: skip
_AMD_FLOPS = {"gfx908": 1024, "gfx90a": 1024, "gfx942": 2048, "gfx950": 4096}
_AMD_SHARED_BYTES = {"gfx908": 128, "gfx90a": 128, "gfx942": 128, "gfx950": 256}
_AMD_BY_CAPABILITY = {(9, 4): "gfx942", (9, 5): "gfx950"}
_GFX = re.compile(r"gfx[0-9a-fA-F]{3,}")


@dataclass(frozen=True)
class Peaks:
    """Rates of one device, 0 where not known.

    Operations in 10^9 per second, memory (the device's own, and what the threads of a block share)
    in 10^9 bytes per second. ``hardware`` and ``device_type`` are those of the `RunEnvironment`.
    """

    device_type: str
    hardware: str
    gigaflops: float = 0.0
    memory_gigabytes: float = 0.0
    shared_gigabytes: float = 0.0


def peaks_of(profile: Profile, *, strict: bool = False) -> Peaks:
    """What the first device says of itself: a TPU, else a GPU.

    ``strict`` is XProf's rule of what is a device (`run_environment_of`). Raises InputError when
    the profile cannot be read.
    """
    environment = run_environment_of(profile, strict=strict)
    if "planes" not in profile.tables:
        has_device = any(plane.kind == "device" for plane in trace_of(profile).planes)
        return Peaks("GPU", "GPU") if has_device else Peaks("CPU", "CPU_ONLY")
    names = profile.columns("planes").names("name").to_list()
    rates = (0.0, 0.0, 0.0)
    for prefix, make in (("/device:TPU:", _tpu_rates), ("/device:GPU:", _gpu_rates)):
        place = next((n for n, name in enumerate(names) if (name or "").startswith(prefix)), None)
        if place is not None:
            rates = make(plane_stats_of(profile, place))
            break
    return Peaks(environment.device_type, environment.hardware, *rates)


def combine_peaks(hosts: Sequence[Peaks]) -> Peaks:
    """The devices of several hosts: those of the last that has any."""
    return next((peaks for peaks in reversed(hosts) if peaks.device_type != "CPU"), hosts[0])


def _real(stats: Mapping[str, str], name: str) -> float:
    try:
        return float(stats.get(name, ""))
    except ValueError:
        return 0.0


def _tpu_rates(stats: Mapping[str, str]) -> tuple[float, float, float]:
    return (
        _real(stats, "peak_teraflops_per_second") * 1000,
        _real(stats, "peak_hbm_bw_gigabytes_per_second"),
        0.0,
    )


def _gpu_rates(stats: Mapping[str, str]) -> tuple[float, float, float]:
    cores, clock = _real(stats, "core_count"), _real(stats, "clock_rate") / 1e6
    flops, shared = _per_cycle(stats)
    told = _real(stats, "peak_teraflops_per_second") * 1000
    written = _real(stats, "peak_sram_wr_bw_gigabytes_per_second")
    return (
        told if told > 0 else cores * flops * clock,
        _real(stats, "memory_bandwidth") / 1e9,
        written if written > 0 else cores * shared * clock,
    )


def _per_cycle(stats: Mapping[str, str]) -> tuple[float, float]:
    """Operations, and bytes of shared memory, per core and cycle."""
    vendor = stats.get("device_vendor")
    capability = (int(_real(stats, "compute_cap_major")), int(_real(stats, "compute_cap_minor")))
    if vendor == "Nvidia":
        older = [known for known in _NVIDIA_FLOPS if known <= capability]
        return _NVIDIA_FLOPS[max(older, default=min(_NVIDIA_FLOPS))], (
            64 if capability[0] <= 2 else 256
        )
    if vendor == "AMD":
        own = stats.get("gpu_device_name", "")
        model = own if _GFX.fullmatch(own) else _AMD_BY_CAPABILITY.get(capability, "")
        return _AMD_FLOPS.get(model, 0), _AMD_SHARED_BYTES.get(model, 0)
    return 0, 0
