"""Recordings of allocators under which every limit does something else (`peakline fit`)."""

import pickle
from random import Random
from typing import Any

from tests.amplification.wire import number, part

_NAMES = ("allocator_name", "requested_bytes", "allocation_bytes", "addr", "bytes_allocated",
          "bytes_available")  # fmt: skip
_KINDS = ("MemoryAllocation", "MemoryDeallocation")


def _type(field: int, key: int, name: str) -> bytes:
    return part(field, number(1, key) + part(2, number(1, key) + part(2, name)))


def _event(n: int, kind: int, address: int, size: int, used: int, left: int) -> bytes:
    stats = part(4, number(1, 1) + part(5, "GPU_0_bfc"))
    for key, value in enumerate((size, size, address, used, left), 2):
        stats += part(4, number(1, key) + number(4, value))
    return part(4, number(1, kind) + number(2, n * 1000) + stats)


def _space(rows: list[tuple[int, int, int]], limit: int) -> bytes:
    """Rows of kind, address and size."""
    events, used = [], 0
    for n, (kind, address, size) in enumerate(rows):
        used += size if kind == 1 else -size
        events.append(_event(n, kind, address, size, used, limit - used))
    types = [_type(4, key, name) for key, name in enumerate(_KINDS, 1)]
    types += [_type(5, key, name) for key, name in enumerate(_NAMES, 1)]
    line = part(3, number(1, 1) + b"".join(events))
    return part(1, part(2, "/host:CPU") + b"".join(types) + line)


def _random(count: int, largest: int, lifetime: int) -> list[tuple[int, int, int]]:
    rng, live, rows = Random(1), [], []
    for n in range(count):
        block = (n << 34, int(largest ** rng.random()) + 1)
        live.append(block)
        rows.append((1, *block))
        if len(live) > lifetime:
            rows.append((2, *live.pop(rng.randrange(len(live)))))
    return rows


def random_sizes(size: int) -> bytes:
    """Of every size up to 16 GiB, some at a time."""
    return _space(_random(size // 120, 1 << 34, 20), 1 << 44)


def large_sizes(size: int) -> bytes:
    """Terabytes at a time: millions of limits."""
    return _space([(1, n << 44, (1 << 40) + n) for n in range(size // 60)], 1 << 60)


def staircase(size: int) -> bytes:
    """Each a MiB larger than the one before it, which is then freed."""
    rows = []
    for n in range(size // 120):
        rows += [(1, n << 34, n << 20)] + ([(2, (n - 1) << 34, (n - 1) << 20)] if n else [])
    return _space(rows, 1 << 44)


def _entry(n: int, action: str, address: int, size: int) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": n,
            "frames": []}  # fmt: skip


def _snapshot(rows: list[tuple[int, int, int]]) -> bytes:
    actions = ("", "alloc", "free_completed")
    trace = [_entry(n, actions[kind], at, size) for n, (kind, at, size) in enumerate(rows)]
    return pickle.dumps({"segments": [], "device_traces": [trace]}, 4)


def snapshot_of_random_sizes(size: int) -> bytes:
    """The same of PyTorch."""
    return _snapshot(_random(size // 60, 1 << 34, 20))


def snapshot_of_a_staircase(size: int) -> bytes:
    """The same of PyTorch."""
    rows = []
    for n in range(1, size // 60):
        rows += [(1, n << 34, n << 20), *([(2, (n - 1) << 34, (n - 1) << 20)] if n > 1 else [])]
    return _snapshot(rows)
