"""On what a profile was taken: the hardware, how many devices, whether a model was trained.

Sources of the words: ``utils/hardware_type_utils.cc``, ``cuda_type_utils.cc``,
``rocm_type_utils.cc`` and ``convert/model_tracker.cc`` of openxla/xprof.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.hlo.modules import modules_of
from peakline.timing.op_names import is_tf_op
from peakline.timing.plane_stats import plane_stats_of

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["RunEnvironment", "gpu_name", "is_gradient", "run_environment_of"]

CPU, GPU, TPU = "CPU_ONLY", "GPU", "TPU"
_GPU_PLANE, _TPU_PREFIX = "/device:GPU:", "/device:TPU:"
_TPU_PLANE = re.compile(r"/device:TPU:[0-9]+")
_NVIDIA = {
    2: "Fermi", 3: "Kepler", 5: "Maxwell", 6: "Pascal", 9: "Hopper", 10: "Blackwell",
}  # fmt: skip
_AMD_FAMILIES = {9: "gfx-9XX series", 10: "gfx-10XX series", 11: "gfx-11XX series"}
_AMD_MODELS = {(9, 4): "gfx942", (9, 5): "gfx950"}
_GFX = re.compile(r"gfx[0-9a-fA-F]{3,}")


@dataclass(frozen=True)
class RunEnvironment:
    """``hardware`` is CPU_ONLY, GPU or TPU, ``device_type`` the device's name, ``CPU`` without one.

    ``devices`` are the GPUs or the TensorCores. ``is_training`` tells whether one of the compiled
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
    elif planes is not None and not (strict and profile.has_runtime_planes):
        kinds = planes.names("kind").to_list()
        others = [place for place, kind in enumerate(kinds) if kind == "device"]
        if others:
            is_tpu = names[others[0]].startswith(_TPU_PREFIX)
            hardware, device_type, devices = (
                (TPU, "TPU", 0) if is_tpu else (GPU, "GPU", len(others))
            )
            told = plane_stats_of(profile, others[0]).get("device_type_string")
            device_type = told or device_type
    host = names.index("/host:CPU") if "/host:CPU" in names else -1
    stats = plane_stats_of(profile, host) if host >= 0 else {}
    return RunEnvironment(
        hardware,
        device_type,
        devices,
        _is_training(profile),
        _number(stats.get("matrix_unit_utilization_percent")),
        _number(stats.get("hbm_utilization_percent")),
    )


def gpu_name(stats: Mapping[str, str]) -> str:
    """The name of a GPU by the capabilities that its plane tells; empty for an unknown vendor."""
    vendor = stats.get("device_vendor", "")
    major = int(_number(stats.get("compute_cap_major")))
    minor = int(_number(stats.get("compute_cap_minor")))
    if vendor == "Nvidia":
        family = _NVIDIA.get(major)
        if major == 7:
            family = "Volta" if minor < 5 else "Turing"
        elif major == 8:
            family = "Ampere" if minor < 9 else "Ada Lovelace"
        return f"Nvidia GPU ({family})" if family else "Nvidia GPU"
    if vendor == "AMD":
        own = stats.get("gpu_device_name", "")
        model = own if _GFX.fullmatch(own) else _AMD_MODELS.get((major, minor), "")
        model = model or _AMD_FAMILIES.get(major, "")
        return f"AMD GPU - {model}" if model else "AMD GPU"
    return ""


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def _is_training(profile: Profile) -> bool:
    return any(
        is_gradient(instruction.op_name, instruction.op_type)
        for module in modules_of(profile)
        for instruction in module.instructions.values()
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
