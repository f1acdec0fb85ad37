"""What the categories (``cat``) of PyTorch's profiler say of where an event happened.

The names are those of ``libkineto/src/ActivityType.cpp`` (pytorch/kineto) and, in lower case, of
PyTorch before 1.11 (``Kernel``, ``Memcpy``, ``Operator``, ``Runtime``). Where Kineto writes an
event follows from ``libkineto/src/output_json.cpp``: work of a device has the device's number as
``pid`` and the stream as ``tid``, and both again among its arguments. The ``pid`` alone says
nothing: in a container a process may be 1, as the second GPU is.
"""

from __future__ import annotations

UNSAID, HOST, DEVICE = range(3)
"""Where an event happened: not said by its category, on a thread of a process, on a device."""

_ON_DEVICE = frozenset(
    (
        "kernel", "concurrent_kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset",
        "gpu_user_annotation", "cuda_sync", "cuda_event", "cuda_profiler_range", "xpu_sync",
        "mtia_ccp_events", "mtia_insight", "hpu_op", "privateuse1_kernel",
    )
)  # fmt: skip
_ON_HOST = frozenset(
    (
        "cpu_op", "operator", "user_annotation", "python_function", "cpu_instant_event",
        "async_cpu_op", "external_correlation", "overhead", "runtime", "cuda_runtime",
        "cuda_driver", "hip_runtime", "hip_driver", "xpu_runtime", "xpu_driver", "mtia_runtime",
        "glow_runtime", "privateuse1_runtime", "privateuse1_driver",
    )
)  # fmt: skip
_WORDS = {"mtia": "MTIA", "hpu": "HPU", "xpu": "XPU", "privateuse1": "device"}


def place_of(category: str) -> int:
    """HOST or DEVICE for a category of PyTorch's, UNSAID for any other."""
    lower = category.lower()
    return DEVICE if lower in _ON_DEVICE else HOST if lower in _ON_HOST else UNSAID


def device_word(category: str) -> str:
    """What a device is called on which events of a category happened: ``GPU``, ``MTIA``, ..."""
    return _WORDS.get(category.lower().partition("_")[0], "GPU")
