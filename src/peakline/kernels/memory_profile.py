"""The sequential rules of the memory profile, one allocator at a time.

Arrays called ``order`` hold row numbers of the snapshot table in time order; a *position* is an
index into ``order``. Sums of sizes are int64 and wrap, as in the C++ they must agree with.
Source of the rules: openxla/xprof, ``xprof/convert/xplane_to_memory_profile.cc``.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, signed64
    from peakline.kernels.memory_layout import ALLOCATION, DEALLOCATION

__all__ = ["active_at_peak", "inherit_metadata", "number_addresses"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _slot(
    slots: cython.const[cython.int][::1],
    known: cython.const[cython.ulonglong][::1],
    value: cython.ulonglong,
    seed: cython.ulonglong,
) -> cython.longlong:
    """The slot that holds ``value``, or the empty one where it belongs."""
    # The finaliser of splitmix64 over the seeded value.
    one: cython.ulonglong = 0xBF58476D1CE4E5B9
    two: cython.ulonglong = 0x94D049BB133111EB
    mixed: cython.ulonglong = value ^ seed
    mask: cython.longlong = slots.shape[0] - 1
    slot: cython.longlong
    mixed = low64((mixed ^ (mixed >> 30)) * one)
    mixed = low64((mixed ^ (mixed >> 27)) * two)
    mixed = mixed ^ (mixed >> 31)
    slot = signed64(mixed) & mask
    while slots[slot] >= 0 and known[slots[slot]] != value:
        slot = (slot + 1) & mask
    return slot


def number_addresses(
    order: cython.const[cython.longlong][::1],
    address: cython.const[cython.ulonglong][::1],
    seed: cython.ulonglong,
    ids: cython.int[::1],
    slots: cython.int[::1],
    known: cython.ulonglong[::1],
    at: cython.longlong[::1],
) -> bool:
    """Number the distinct addresses in order of first appearance, as far as ``known`` has room.

    ``slots`` (a power of two, more than ``known`` has, empty ones -1) is their hash table. As
    addresses come from untrusted files, a random ``seed`` keeps anyone from choosing ones that
    collide. ``at`` holds the next position and how many addresses are known, in and out. Returns
    whether every position has its number; if not, call again with more ``known`` and with more,
    empty ``slots``, which get what is known first.
    """
    position: cython.longlong = at[0]
    count: cython.longlong = at[1]
    number: cython.longlong
    slot: cython.longlong
    value: cython.ulonglong
    with cython.nogil:
        for number in range(count):
            slots[_slot(slots, known, known[number], seed)] = number
        while position < order.shape[0]:
            value = address[order[position]]
            slot = _slot(slots, known, value, seed)
            if slots[slot] < 0:
                if count == known.shape[0]:
                    break
                slots[slot] = count
                known[count] = value
                count += 1
            ids[position] = slots[slot]
            position += 1
    at[0], at[1] = position, count
    return position == order.shape[0]


def inherit_metadata(
    order: cython.const[cython.longlong][::1],
    activity: cython.const[cython.int][::1],
    ids: cython.const[cython.int][::1],
    live: cython.longlong[::1],
    source: cython.longlong[::1],
) -> None:
    """The row whose op, region, data type and shape each position shows, into ``source``.

    A deallocation shows those of the first allocation still live at its address and ends it;
    everything else shows its own: ``source`` is given as ``order``. ``live`` (given as -1) is room
    for a row per address.
    """
    position: cython.longlong
    row: cython.longlong
    number: cython.longlong
    with cython.nogil:
        for position in range(order.shape[0]):
            row = order[position]
            number = ids[position]
            if activity[row] == ALLOCATION:
                if live[number] < 0:
                    live[number] = row
            elif activity[row] == DEALLOCATION and live[number] >= 0:
                source[position] = live[number]
                live[number] = -1


def active_at_peak(
    order: cython.const[cython.longlong][::1],
    time: cython.const[cython.longlong][::1],
    activity: cython.const[cython.int][::1],
    allocated: cython.const[cython.longlong][::1],
    steps: cython.const[cython.longlong][::1],
    ids: cython.const[cython.int][::1],
    peak_time: cython.longlong,
    peak_step: cython.longlong,
    peak_heap: cython.longlong,
    active: cython.longlong[::1],
) -> int:
    """What the peak step had allocated and not freed by the peak; returns the unmapped bytes.

    Unmapped is the part of the heap at the peak that the step's own events do not explain:
    memory that was there before it. It may come out negative. Of several allocations at one
    address the last counts: ``active`` (given as -1) gets its position per address number.
    """
    unmapped: cython.longlong = peak_heap
    position: cython.longlong
    row: cython.longlong
    number: cython.longlong
    with cython.nogil:
        for position in range(order.shape[0]):
            row = order[position]
            if time[row] > peak_time:
                break
            if steps[position] != peak_step:
                continue
            number = ids[position]
            if activity[row] == ALLOCATION:
                active[number] = position
                unmapped = signed64(unmapped - allocated[row])
            elif activity[row] == DEALLOCATION and active[number] >= 0:
                # A free of what the step did not allocate changes nothing: its bytes are given
                # back once for the event and taken again for the foreign buffer.
                active[number] = -1
                unmapped = signed64(unmapped + allocated[row])
    return unmapped
