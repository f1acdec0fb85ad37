"""On what a profile was taken: the hardware and how fast it could be, how many devices, whether a
model was trained.

Sources of the words and of the numbers per core and clock cycle, which are the makers':
``utils/hardware_type_utils.cc``, ``cuda_type_utils.cc``, ``rocm_type_utils.cc``,
``convert/model_tracker.cc`` and ``xplane_to_op_stats.cc`` of openxla/xprof.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peakline.hlo.modules import modules_of
from peakline.tables import Profile
from peakline.timing.ops.names import is_tf_op
from peakline.timing.programs.chips import plane_stats_of
from peakline.trace.events import trace_of

CPU, GPU, TPU = "CPU_ONLY", "GPU", "TPU"
_GPU_PLANE, _TPU_PREFIX = "/device:GPU:", "/device:TPU:"
_TPU_PLANE = re.compile(r"/device:TPU:[0-9]+")
_NVIDIA = {
    2: "Fermi", 3: "Kepler", 5: "Maxwell", 6: "Pascal", 9: "Hopper", 10: "Blackwell",
}  # fmt: skip
_AMD_FAMILIES = {9: "gfx-9XX series", 10: "gfx-10XX series", 11: "gfx-11XX series"}
_AMD_MODELS = {(9, 4): "gfx942", (9, 5): "gfx950"}
_GFX = re.compile(r"gfx[0-9a-fA-F]{3,}")
# Operations of the fastest unit for 32 or 16 bits, per multiprocessor and cycle.
_NVIDIA_FLOPS = {
    (10, 0): 8192, (9, 0): 4096, (8, 9): 1024, (8, 6): 1024, (8, 0): 2048, (7, 5): 1024,
    (7, 0): 1024, (6, 1): 256, (6, 0): 256, (5, 0): 256, (3, 0): 384, (2, 0): 64,
}  # fmt: skip
_AMD_FLOPS = {"gfx908": 1024, "gfx90a": 1024, "gfx942": 2048, "gfx950": 4096}
_AMD_SHARED_BYTES = {"gfx908": 128, "gfx90a": 128, "gfx942": 128, "gfx950": 256}


@dataclass(frozen=True)
class RunEnvironment:
    """``hardware`` is CPU_ONLY, GPU or TPU, ``device_type`` the device's name, ``CPU`` without one.

    ``devices`` are the GPUs or the TensorCores. ``is_training`` says whether one of the compiled
    programs computes gradients. ``matrix_percent`` and ``memory_percent`` are how much of the
    matrix units and the memory bandwidth was used, 0 where nobody measured it.
    """

    hardware: str
    device_type: str
    devices: int
    is_training: bool
    matrix_percent: float
    memory_percent: float


def run_environment_of(profile: Profile, *, strict: bool = False) -> RunEnvironment:
    """What the planes of ``profile`` say; raises InputError when it cannot be read.

    ``strict`` is XProf's rule: an XSpace with neither a GPU nor a TensorCore is that of a CPU.
    Else its other devices count: SparseCores as a TPU, any other as a GPU.
    """
    planes = profile.columns("planes") if "planes" in profile.tables else None
    names = [] if planes is None else [name or "" for name in planes.names("name").to_list()]
    gpus = [place for place, name in enumerate(names) if name.startswith(_GPU_PLANE)]
    tpus = [place for place, name in enumerate(names) if _TPU_PLANE.fullmatch(name)]
    hardware, device_type, devices = CPU, "CPU", 0
    if gpus:
        hardware, devices = GPU, len(gpus)
        device_type = gpu_name(plane_stats_of(profile, gpus[0])) or "GPU"
    elif tpus:
        hardware, devices = TPU, len(tpus)
        device_type = plane_stats_of(profile, tpus[0]).get("device_type_string", "")
    elif planes is not None and not (strict and profile.event_rules.planes is not None):
        kinds = planes.names("kind").to_list()
        others = [place for place, kind in enumerate(kinds) if kind == "device"]
        if others:
            is_tpu = names[others[0]].startswith(_TPU_PREFIX)
            hardware, device_type, devices = (
                (TPU, "TPU", 0) if is_tpu else (GPU, "GPU", len(others))
            )
            result = plane_stats_of(profile, others[0]).get("device_type_string")
            device_type = result or device_type
    host = names.index("/host:CPU") if "/host:CPU" in names else -1
    stats = plane_stats_of(profile, host) if host >= 0 else {}
    return RunEnvironment(
        hardware,
        device_type,
        devices,
        _is_training(profile),
        number_in(stats, "matrix_unit_utilization_percent"),
        number_in(stats, "hbm_utilization_percent"),
    )


def combine_environments(hosts: Sequence[RunEnvironment], *, compatible: bool) -> RunEnvironment:
    """That of several; with ``compatible`` the last alone says whether a model was trained."""
    with_device = [host for host in hosts if host.device_type != "CPU"]
    return RunEnvironment(
        max((host.hardware for host in hosts), key=(CPU, GPU, TPU).index),
        (with_device or hosts)[-1].device_type,
        sum(host.devices for host in with_device),
        hosts[-1].is_training if compatible else any(host.is_training for host in hosts),
        sum(host.matrix_percent for host in hosts),
        sum(host.memory_percent for host in hosts),
    )


def gpu_name(stats: Mapping[str, str]) -> str:
    """The name of a GPU by the capabilities that its plane names; empty for an unknown vendor."""
    vendor = stats.get("device_vendor", "")
    major, minor = _capability(stats)
    if vendor == "Nvidia":
        family = _NVIDIA.get(major)
        if major == 7:
            family = "Volta" if minor < 5 else "Turing"
        elif major == 8:
            family = "Ampere" if minor < 9 else "Ada Lovelace"
        return f"Nvidia GPU ({family})" if family else "Nvidia GPU"
    if vendor == "AMD":
        model = _amd_model(stats, (major, minor)) or _AMD_FAMILIES.get(major, "")
        return f"AMD GPU - {model}" if model else "AMD GPU"
    return ""


def _capability(stats: Mapping[str, str]) -> tuple[int, int]:
    return int(number_in(stats, "compute_cap_major")), int(number_in(stats, "compute_cap_minor"))


def _amd_model(stats: Mapping[str, str], capability: tuple[int, int]) -> str:
    own = stats.get("gpu_device_name", "")
    return own if _GFX.fullmatch(own) else _AMD_MODELS.get(capability, "")


def number_in(stats: Mapping[str, str], name: str) -> float:
    """A stat of a plane as a number, 0 for what is none or not finite."""
    try:
        number = float(stats.get(name) or 0)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def _is_training(profile: Profile) -> bool:
    return any(
        is_gradient(op_name, op_type)
        for module in modules_of(profile)
        for op_name, op_type in module.origins()
    )


def is_gradient(op_name: str, op_type: str) -> bool:
    """Whether a framework's op belongs to the computation of gradients."""
    scopes = op_name.split("/")
    if is_tf_op(op_name, op_type):
        # The last part is the op itself and no scope.
        return any(
            scope == "gradient_tape" or scope.startswith("gradients") for scope in scopes[:-1]
        )
    # JAX spells the transposition that differentiates `transpose(jvp(f))`, and the op that
    # permutes dimensions `transpose[permutation=(1, 0)]`.
    return any(scope.startswith("transpose(") for scope in scopes)


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
    for prefix, make in (("/device:TPU:", _tpu_rates), ("/device:GPU:", gpu_rates)):
        place = next((n for n, name in enumerate(names) if (name or "").startswith(prefix)), None)
        if place is not None:
            rates = make(plane_stats_of(profile, place))
            break
    return Peaks(environment.device_type, environment.hardware, *rates)


def combine_peaks(hosts: Sequence[Peaks]) -> Peaks:
    """The devices of several hosts: those of the last that has any."""
    return next((peaks for peaks in reversed(hosts) if peaks.device_type != "CPU"), hosts[0])


def _tpu_rates(stats: Mapping[str, str]) -> tuple[float, float, float]:
    return (
        number_in(stats, "peak_teraflops_per_second") * 1000,
        number_in(stats, "peak_hbm_bw_gigabytes_per_second"),
        0.0,
    )


def gpu_rates(stats: Mapping[str, str]) -> tuple[float, float, float]:
    """What a GPU can do by its plane's stats: GFLOP/s, GB/s of its memory and of what is shared."""
    cores, clock = number_in(stats, "core_count"), number_in(stats, "clock_rate") / 1e6
    flops, shared = _per_cycle(stats)
    stated = number_in(stats, "peak_teraflops_per_second") * 1000
    written = number_in(stats, "peak_sram_wr_bw_gigabytes_per_second")
    return (
        stated if stated > 0 else cores * flops * clock,
        number_in(stats, "memory_bandwidth") / 1e9,
        written if written > 0 else cores * shared * clock,
    )


def _per_cycle(stats: Mapping[str, str]) -> tuple[float, float]:
    """Operations, and bytes of shared memory, per core and cycle."""
    vendor = stats.get("device_vendor")
    capability = _capability(stats)
    if vendor == "Nvidia":
        older = [known for known in _NVIDIA_FLOPS if known <= capability]
        return _NVIDIA_FLOPS[max(older, default=min(_NVIDIA_FLOPS))], (
            64 if capability[0] <= 2 else 256
        )
    if vendor == "AMD":
        model = _amd_model(stats, capability)
        return _AMD_FLOPS.get(model, 0), _AMD_SHARED_BYTES.get(model, 0)
    return 0, 0
