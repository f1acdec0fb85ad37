"""On what a profile was taken, and what that can do: as its planes say it, else by the chip.

What known chips can do at most goes by what profiles call them; of others nothing is made up.
TPUs: https://cloud.google.com/tpu/docs/v2, v3, v4, v5e, v5p, v6e and tpu7x, of one chip for numbers
of 16 bits; what profiles show of v2 and v3 is one of the two cores of a chip. GPUs: operations per
multiprocessor and cycle of the matrix units for numbers of 16 bits, dense, which times the clock
rate and the number of multiprocessors are the makers' figures: NVIDIA's papers on the architectures
(V100 125, T4 65, A100 312, A10 125, L4 121, H100 989, B200 2250 TFLOP/s), AMD's data sheets (MI100
185, MI250X 383, MI300X 1307, MI355X 2516 TFLOP/s).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peakline.tables import Profile
from peakline.timing.programs.rates import GPU, TPU, PeakRates, combine_peak_rates
from peakline.trace.events import DEVICE, trace_of


def plane_stats_of(profile: Profile, plane: int) -> Mapping[str, str]:
    """The stats of the plane in row ``plane`` of ``planes``, as texts; empty without any.

    Of equal names the last counts.
    """
    if "plane_stats" not in profile.tables:
        return {}
    stats = profile.columns("plane_stats")
    rows = (stats.array("plane_id") == plane).nonzero()[0]
    names = stats.names("name").take(rows).to_list()
    values = stats.names("value").take(rows).to_list()
    return {name or "": value or "" for name, value in zip(names, values, strict=True)}


def vendors_of(profile: Profile) -> dict[int, str]:
    """Who made the device of each plane that says it: Nvidia, AMD."""
    planes = profile.columns("planes").rows
    stated = {plane: plane_stats_of(profile, plane).get("device_vendor") for plane in range(planes)}
    return {plane: vendor for plane, vendor in stated.items() if vendor}


_TPUS: dict[str, tuple[float, float]] = {
    "TPU v2": (45.0 / 2, 700.0 / 2),
    "TPU v3": (123.0 / 2, 900.0 / 2),
    "TPU v4": (275.0, 1228.0),
    "TPU v5 Lite": (197.0, 819.0),
    "TPU v5e": (197.0, 819.0),
    "TPU v5": (459.0, 2765.0),
    "TPU v5p": (459.0, 2765.0),
    "TPU v6 Lite": (918.0, 1638.0),
    "TPU v6e": (918.0, 1638.0),
    "TPU7x": (2307.0, 7380.0),
    "TPU v7x": (2307.0, 7380.0),
}
"""TFLOP/s, and 10^9 bytes per second of main memory."""

_NVIDIA = {
    (7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (8, 6): 1024, (8, 9): 1024, (9, 0): 4096,
    (10, 0): 8192,
}  # fmt: skip
_AMD = {"gfx908": 1024, "gfx90a": 1024, "gfx942": 2048, "gfx950": 4096}
_AMD_BY_CAPABILITY = {(9, 4): "gfx942", (9, 5): "gfx950"}


def tpu_peaks(name: str) -> tuple[float, float]:
    """GFLOP/s and GB/s of main memory of a TPU by its ``device_type_string``; 0 for an unknown."""
    teraflops, memory = _TPUS.get(name, (0.0, 0.0))
    return teraflops * 1000, memory


def gpu_flops_per_cycle(vendor: str, capability: tuple[int, int], model: str) -> int:
    """Operations of a multiprocessor of a GPU per cycle; 0 for an unknown one.

    ``vendor`` is ``Nvidia`` or ``AMD``, ``model`` AMD's own name such as ``gfx942``.
    """
    if vendor == "Nvidia":
        return _NVIDIA.get(capability, 0)
    return _AMD.get(amd_model(capability, model), 0) if vendor == "AMD" else 0


def amd_model(capability: tuple[int, int], model: str) -> str:
    """AMD's name of a GPU, by itself or by its capability; empty where it is not known."""
    return model if model.startswith("gfx") else _AMD_BY_CAPABILITY.get(capability, "")


CPU = "CPU"
_TPU_PLANE, _SPARSE = "/device:TPU:", "SparseCore"
_BANDWIDTHS = ("hbm", "sram_rd", "sram_wr", "cmem_rd", "cmem_wr", "vmem_rd", "vmem_wr")


@dataclass(frozen=True)
class Chips:
    """``kind`` is CPU, GPU or TPU, ``name`` what the device is called, ``count`` how many planes
    there are of it; 0 where a peak is not known.
    """

    kind: str
    name: str
    count: int
    peaks: PeakRates


def chips_of(profile: Profile) -> Chips:
    """The devices of a profile: TPUs, else any others, else the CPU.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    devices = [plane for plane in trace.planes if plane.kind == DEVICE]
    tpus = [one for one in devices if one.name.startswith(_TPU_PLANE) and _SPARSE not in one.name]
    if tpus:
        stats = plane_stats_of(profile, tpus[0].plane_id)
        name = stats.get("device_type_string", TPU)
        return Chips(TPU, name, len(tpus), _of_tpu(stats, name))
    if devices:
        stats = plane_stats_of(profile, devices[0].plane_id)
        return Chips(GPU, _gpu_name(stats), len(devices), _of_gpu(stats))
    return Chips(CPU, CPU, 1, PeakRates())


def combine_chips(hosts: Sequence[Chips]) -> Chips:
    """Those of several hosts; a host with a device goes before one without."""
    kinds = (CPU, GPU, TPU)
    kind = max((host.kind for host in hosts), key=kinds.index)
    those = [host for host in hosts if host.kind == kind]
    peaks = those[0].peaks if len({host.peaks for host in those}) == 1 else None
    return Chips(
        kind, those[0].name, sum(host.count for host in those),
        peaks or combine_peak_rates([host.peaks for host in those]),
    )  # fmt: skip


def _of_tpu(stats: Mapping[str, str], name: str) -> PeakRates:
    flops, memory = tpu_peaks(name)
    rates = [_number(stats, f"peak_{kind}_bw_gigabytes_per_second") for kind in _BANDWIDTHS]
    rates[0] = rates[0] or memory
    return PeakRates(
        _number(stats, "peak_teraflops_per_second") * 1000 or flops, tuple(rates),
        rates[3] > 0 or rates[4] > 0, _number(stats, "has_merged_vmem") != 0,
        _number(stats, "has_megacore") != 0,
    )  # fmt: skip


def _capability(stats: Mapping[str, str]) -> tuple[int, int]:
    return int(_number(stats, "compute_cap_major")), int(_number(stats, "compute_cap_minor"))


def _of_gpu(stats: Mapping[str, str]) -> PeakRates:
    per_cycle = gpu_flops_per_cycle(
        stats.get("device_vendor", ""), _capability(stats), stats.get("gpu_device_name", "")
    )
    cycles = _number(stats, "core_count") * _number(stats, "clock_rate") / 1e6
    flops = _number(stats, "peak_teraflops_per_second") * 1000 or per_cycle * cycles
    shared = tuple(
        _number(stats, f"peak_sram_{way}_bw_gigabytes_per_second") for way in ("rd", "wr")
    )
    return PeakRates(flops, (_number(stats, "memory_bandwidth") / 1e9, *shared))


def _gpu_name(stats: Mapping[str, str]) -> str:
    vendor, capability = stats.get("device_vendor", ""), _capability(stats)
    if vendor == "AMD":
        return f"AMD GPU {amd_model(capability, stats.get('gpu_device_name', ''))}".strip()
    if vendor == "Nvidia" and capability[0]:
        return f"NVIDIA GPU (compute capability {capability[0]}.{capability[1]})"
    return f"{vendor} GPU".strip()


def _number(stats: Mapping[str, str], name: str) -> float:
    try:
        number = float(stats.get(name) or 0)
    except ValueError:
        return 0.0
    return number if 0 < number < math.inf else 0.0
