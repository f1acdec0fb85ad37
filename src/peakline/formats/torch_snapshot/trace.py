"""The history in a snapshot: what the allocator did on each device, as far as its ring reaches.

The ring has dropped its oldest entries, so memory may be live that no entry of it allocated. What
was live before the first entry follows from the rest: blocks that are freed first, and blocks of
the snapshot that no entry mentions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import BoolArray, Int8Array, Int32Array, Int64Array, IntpArray, UInt64Array
from peakline.formats.torch_snapshot.segments import FREE, IN_USE
from peakline.formats.torch_snapshot.stacks import Stacks
from peakline.formats.torch_snapshot.unpickle import Bad, integers

ALLOC, FREE_REQUESTED, FREE_COMPLETED, OOM, IGNORED, UNKNOWN = range(6)
SEGMENT_ACTIONS = {"segment_alloc": 6, "segment_map": 7, "segment_free": 8, "segment_unmap": 9}
"""Actions that take memory from the device or give it back, and their codes."""

_FIRST_SEGMENT, _FIRST_RETURN = 6, 8
_CODES = {
    "alloc": ALLOC,
    "free_requested": FREE_REQUESTED,
    "free_completed": FREE_COMPLETED,
    "free": FREE_COMPLETED,
    "oom": OOM,
    "snapshot": IGNORED,
    "user_defined": IGNORED,
    **SEGMENT_ACTIONS,
}

_GRANULE = 512
_MOST_BYTES = 2**62
_FIRST_INTERVAL = 20
_INTERVALS = 16


@dataclass(frozen=True, eq=False)
class Trace:
    """The entries of one device, in order; ``size`` is what was requested."""

    code: Int8Array
    address: UInt64Array
    size: Int64Array
    stream: Int64Array
    time_us: Int64Array
    device_free: Int64Array
    stack: Int64Array


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of one device at the time of the snapshot."""

    address: UInt64Array
    size: Int64Array
    requested: Int64Array
    state: Int32Array
    stream: Int64Array
    stack: Int64Array


@dataclass(frozen=True, eq=False)
class History:
    """What follows from a trace and the blocks at its end.

    Per entry: ``bytes`` of its block (0 where it has none), and ``completed``: for a
    free_requested entry the one that completed it, -1 while it is pending, the entry itself for
    others. ``shown`` marks entries that begin or end a buffer or change the segments: a free is
    shown where it was requested. ``before`` are the blocks that were live before the first entry
    (their stack is -1 where only their free is known). ``in_use`` and ``pool`` are the bytes of
    live blocks and of segments after each entry. ``unexplained`` counts blocks whose state
    contradicts the trace.
    """

    bytes: Int64Array
    completed: Int64Array
    shown: BoolArray
    before: Blocks
    in_use: Int64Array
    pool: Int64Array
    unexplained: int


def read_trace(entries: list[dict[Any, Any]], stacks: Stacks) -> Trace:
    """Columns of one device's entries; raises Bad for fields of the wrong kind."""
    try:
        codes = [_CODES.get(entry.get("action", ""), UNKNOWN) for entry in entries]
    except TypeError:
        raise Bad("an action is no text") from None
    code = np.array(codes, np.int8)
    device_free = np.full(code.size, -1, np.int64)
    failed = np.flatnonzero(code == OOM)
    device_free[failed] = integers([entries[row] for row in failed], "device_free", -1)
    return Trace(
        code=code,
        address=integers(entries, "addr", 0).view(np.uint64),
        size=integers(entries, "size", 0),
        stream=integers(entries, "stream", 0),
        time_us=integers(entries, "time_us", 0),
        device_free=device_free,
        stack=stacks.number([entry.get("frames") for entry in entries]),
    )


def follow(trace: Trace, blocks: Blocks, pool: int, divisions: Mapping[object, object]) -> History:
    """Pair the frees of ``trace`` with its allocations, and find what was live before it.

    ``pool`` is the size of the device's segments at the end, ``divisions`` the setting that
    blocks are rounded by. Sizes of blocks that are gone follow from what was requested; blocks
    that still live have the size they have.
    """
    entries = trace.code.size
    buffer_rows = np.flatnonzero(trace.code <= FREE_COMPLETED)
    rows = buffer_rows[np.argsort(trace.address[buffer_rows], kind="stable")]
    address, code = trace.address[rows], trace.code[rows]
    same = np.zeros(rows.size, np.bool_)  # as the entry before it
    same[1:] = address[1:] == address[:-1]
    is_first, is_last = ~same, np.ones(rows.size, np.bool_)
    is_last[:-1] = ~same[1:]
    earlier = np.concatenate([[UNKNOWN], code[:-1]])
    earlier = np.where(same, earlier, UNKNOWN)

    size = round_sizes(trace.size, divisions)
    size[trace.code > FREE_COMPLETED] = 0
    at_end = np.argsort(blocks.address, kind="stable")
    place = np.searchsorted(blocks.address[at_end], address)
    known = place < at_end.size
    block = np.full(rows.size, -1, np.int64)
    block[known] = at_end[place[known]]
    known[known] = blocks.address[block[known]] == address[known]
    # The block that the last allocation at an address made is still there.
    chosen = is_last & known & (code == ALLOC)
    chosen[chosen] = blocks.state[block[chosen]] != FREE
    size[rows[chosen]] = blocks.size[block[chosen]]

    completes = (code == FREE_COMPLETED) & (earlier == FREE_REQUESTED)
    completed = np.arange(entries, dtype=np.int64)
    completed[trace.code == FREE_REQUESTED] = -1
    done = np.flatnonzero(completes)
    completed[rows[done - 1]] = rows[done]
    shown = (trace.code <= FREE_COMPLETED) | (trace.code >= _FIRST_SEGMENT)
    shown[rows[done]] = False

    freed_first = is_first & (code != ALLOC)
    live = blocks.state != FREE
    untouched = live & ~np.isin(blocks.address, address)
    before = _joined(blocks, np.flatnonzero(untouched), trace, rows[freed_first], size)

    taken = shown & (trace.code == ALLOC)
    change = np.where(taken, size, 0)
    change -= np.where(shown & ~taken & (trace.code <= FREE_COMPLETED), size, 0)
    growth = np.where(trace.code >= _FIRST_SEGMENT, trace.size, 0)
    growth[trace.code >= _FIRST_RETURN] *= -1
    return History(
        bytes=size,
        completed=completed,
        shown=shown,
        before=before,
        in_use=int(before.size.sum()) + np.cumsum(change),
        # Sizes that are no sizes may add up to more than there are numbers.
        pool=max(-_MOST_BYTES, min(pool - int(growth.sum()), _MOST_BYTES)) + np.cumsum(growth),
        unexplained=_contradictions(code[is_last], known[is_last], block[is_last], blocks.state),
    )


def _joined(
    blocks: Blocks, untouched: IntpArray, trace: Trace, freed: IntpArray, size: Int64Array
) -> Blocks:
    """Blocks of the snapshot that no entry mentions, and those that entries free first."""
    return Blocks(
        np.concatenate([blocks.address[untouched], trace.address[freed]]),
        np.concatenate([blocks.size[untouched], size[freed]]),
        np.concatenate([blocks.requested[untouched], trace.size[freed]]),
        np.concatenate([blocks.state[untouched], np.full(freed.size, IN_USE, np.int32)]),
        np.concatenate([blocks.stream[untouched], trace.stream[freed]]),
        np.concatenate([blocks.stack[untouched], np.full(freed.size, -1, np.int64)]),
    )


def _contradictions(last: Int8Array, known: BoolArray, block: Int64Array, state: Int32Array) -> int:
    """How many addresses are live after their last entry and not in the snapshot, or inversely."""
    live = np.zeros(last.size, np.bool_)
    live[known] = state[block[known]] != FREE
    return int((live != (last != FREE_COMPLETED)).sum())


def round_sizes(sizes: Int64Array, divisions: Mapping[object, object]) -> Int64Array:
    """Bytes of the blocks for requests of ``sizes``: multiples of 512, 0 staying 0.

    ``divisions`` is the setting ``roundup_power2_divisions``: by size in MiB (a power of two,
    as text) into how many steps a doubling is divided; 0 and 1 mean none. Source:
    ``CUDACachingAllocator.cpp`` (round_size) and ``AllocatorConfig.cpp`` in pytorch/pytorch.
    """
    steps = np.zeros(_INTERVALS, np.int64)
    for interval in range(_INTERVALS):
        value = divisions.get(str(1 << interval), 0)
        if isinstance(value, int) and 1 < value <= 1 << 30:
            steps[interval] = value
    plain = -(-np.maximum(sizes, 0) // _GRANULE) * _GRANULE
    if not steps.any():
        return plain
    # Exact, unlike a logarithm: the exponent of the float that a size below 2**53 is.
    power = np.frexp(np.maximum(sizes, 1).astype(np.float64))[1].astype(np.int64) - 1
    step = steps[np.clip(power - _FIRST_INTERVAL, 0, _INTERVALS - 1)]
    floor = np.left_shift(1, np.clip(power, 0, 62))
    width = floor // np.maximum(step, 1)
    stepped = np.where(width > 0, -(-sizes // np.maximum(width, 1)) * width, 2 * floor)
    return np.where((step > 1) & (sizes > _GRANULE * step), stepped, plain)
