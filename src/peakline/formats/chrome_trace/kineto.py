"""What the categories (``cat``) of PyTorch's profiler say of an event: what it is, and where.

The names are those of ``libkineto/src/ActivityType.cpp`` (pytorch/kineto) and, in lower case, of
PyTorch before 1.11 (``Kernel``, ``Memcpy``, ``Operator``, ``Runtime``). Where Kineto writes an
event follows from ``libkineto/src/output_json.cpp``: work of a device has the device's number as
``pid`` and the stream as ``tid``, and both again among its arguments. The ``pid`` alone says
nothing: in a container a process may be 1, as the second GPU is.
"""

from __future__ import annotations

import json
import re

import numpy as np

from peakline.arrays import UInt8Array
from peakline.tables.columns import Columns
from peakline.tables.event_rules import EventKind, ProcessGroup, StatedOps, numbers_of
from peakline.tables.table_source import TableSource

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


_KINDS = {
    EventKind.NO_WORK: (
        "gpu_user_annotation", "cuda_sync", "overhead", "cuda_profiler_range", "ac2g", "trace",
        "fwdbwd", "cpu_instant_event", "async_cpu_op", "cuda_event", "xpu_sync", "mtia_insight",
    ),
    EventKind.RUNTIME_CALL: (
        "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "runtime", "xpu_runtime",
        "xpu_driver", "mtia_runtime", "privateuse1_runtime", "privateuse1_driver",
    ),
    EventKind.ANNOTATION: ("user_annotation",),
    EventKind.OP: ("cpu_op", "operator"),
    EventKind.KERNEL: ("kernel", "concurrent_kernel"),
}  # fmt: skip
_KIND_OF = {category: kind for kind, categories in _KINDS.items() for category in categories}
_MTIA, _WAITS_ON = "mtia_ccp_events", "wait_on_stream"
"""The category of all that an MTIA's queues do, and the argument of what waits for another."""
_SCOPE = "#"
"""In the names of PyTorch's own marks (``ProfilerStep#5``, ``Optimizer.step#SGD.step``), which
older versions give the category of ops; no op's name holds it."""


BACKENDS = re.compile(
    r"(gloo|mpi|ucc):(?:(?:sparse_)?all_reduce|all_reduce_sparse|reduce|broadcast|_?all_?gather\w*"
    r"|gather|scatter|_?reduce_scatter\w*|all_to_all|barrier|monitoredBarrier|send|recv\w*)"
)
"""What PyTorch's backends for hosts call their collectives, which run on threads of theirs:
newer versions give them the category of annotations (``ProcessGroupGloo.cpp`` and its like)."""


def _kinds(events: Columns) -> UInt8Array:
    category, name = events.names("category"), events.names("name")
    kinds: UInt8Array = category.per_row(
        lambda text: _KIND_OF.get(text.lower(), EventKind.UNSTATED), np.uint8
    )
    by_backend = name.per_row(lambda text: BACKENDS.fullmatch(text) is not None, np.bool_)
    kinds[by_backend & (kinds == EventKind.ANNOTATION)] = EventKind.OP
    return kinds


def kinds_of(profile: TableSource) -> UInt8Array:
    """An `EventKind` for every row of ``events``: marks, arrows and waits are no work."""
    events = profile.columns("events", frozenset(("category", "name")))
    category, kinds = events.names("category"), _kinds(events)
    if any(text.lower() == _MTIA for text in category.values):
        waits = profile.typed_stats(frozenset((_WAITS_ON,))).array("event_id")
        of_queues = category.per_row(lambda text: text.lower() == _MTIA, np.bool_)
        kinds[waits[of_queues[waits]]] = EventKind.NO_WORK
    return kinds


def ops_of(profile: TableSource) -> StatedOps | None:
    """The ops that events with such a category are, by name; None without any."""
    events = profile.columns("events", frozenset(("category", "name")))
    name = events.names("name")
    is_op = _kinds(events) == EventKind.OP
    if not is_op.any():
        return None
    op = np.full(len(name.values) + 1, -1, np.int32)
    ops: list[tuple[str, str]] = []
    for code in np.unique(name.codes[is_op]).tolist():
        if _SCOPE not in name.values[code]:
            op[code] = len(ops)
            ops.append((name.values[code], ""))
    return StatedOps(np.where(is_op, op[name.codes], np.int32(-1)), ops, calls=True)


def process_groups(info: bytes) -> tuple[ProcessGroup, ...]:
    """The process groups that ``distributedInfo`` lists as ``pg_config`` (PyTorch 2.3 and newer).

    The ranks are a list, or the text of one where Kineto itself wrote the entry
    (``libkineto/src/output_json.cpp``).
    """
    try:
        stated = json.loads(info)
    except (ValueError, RecursionError):
        return ()
    config = stated.get("pg_config") if isinstance(stated, dict) else None
    result = []
    for group in config if isinstance(config, list) else ():
        if isinstance(group, dict) and "pg_name" in group:
            ranks, size = numbers_of(group.get("ranks")), group.get("pg_size")
            count = size if type(size) is int and 0 < size < 2**31 else len(ranks) or -1
            backend = str(group.get("backend_config", ""))
            result.append(ProcessGroup(str(group["pg_name"]), ranks, count, backend))
    return tuple(result)
