"""What known chips can do at most, by what profiles call them; of others nothing is made up.

TPUs: https://cloud.google.com/tpu/docs/v2, v3, v4, v5e, v5p, v6e and tpu7x, of one chip for numbers
of 16 bits; what profiles show of v2 and v3 is one of the two cores of a chip. GPUs: operations per
multiprocessor and cycle of the matrix units for numbers of 16 bits, dense, which times the clock
rate and the number of multiprocessors are the makers' figures: NVIDIA's papers on the architectures
(V100 125, T4 65, A100 312, A10 125, L4 121, H100 989, B200 2250 TFLOP/s), AMD's data sheets (MI100
185, MI250X 383, MI300X 1307, MI355X 2516 TFLOP/s).
"""

from __future__ import annotations

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
