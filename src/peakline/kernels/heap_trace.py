"""The heap of a compiled program (``HeapSimulatorTrace``, xla/service/hlo.proto)."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.heap_layout import ALLOCATE, FREE, SHARE

__all__ = ["live_spans", "replay"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _holder(holder: cython.longlong[::1], value: cython.longlong) -> cython.longlong:
    """The value whose memory ``value`` uses; on the way every pointer is halved."""
    while holder[value] != value:
        holder[value] = holder[holder[value]]
        value = holder[value]
    return value


def replay(
    kind: cython.const[cython.uchar][::1],
    value: cython.const[cython.longlong][::1],
    shared_with: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    uses: cython.longlong[::1],
    holder: cython.longlong[::1],
    live: cython.longlong[::1],
) -> int:
    """What is live after every event, in bytes; returns how many events do not fit those before.

    ``value`` and ``shared_with`` number the values; those below 0 have no place, and events of such
    change nothing. ``size`` is per value, in bytes; all together are
    below 2^63. ``uses``, zeros
    at first, becomes how many values still use the memory of each; ``holder``, each value itself at
    first, whose memory it uses (with a few steps in between).

    A value that is shared with one of which nothing was in use any more brings its memory back: an
    operation in place gives its operand free first (``HeapSimulator::RunComputation``).
    """
    at: cython.longlong
    own: cython.longlong
    other: cython.longlong
    strange: cython.longlong = 0
    bytes_live: cython.longlong = 0
    with cython.nogil:
        for at in range(kind.shape[0]):
            own = value[at]
            if own < 0 or own >= size.shape[0]:
                strange += 1
            elif kind[at] == FREE:
                own = _holder(holder, own)
                if uses[own] <= 0:
                    strange += 1
                else:
                    uses[own] -= 1
                    if uses[own] == 0:
                        bytes_live -= size[own]
            elif kind[at] == SHARE:
                other = shared_with[at]
                if other < 0 or other >= size.shape[0]:
                    strange += 1
                else:
                    other = _holder(holder, other)
                    holder[own] = other
                    uses[other] += 1
                    if uses[other] == 1:
                        bytes_live += size[other]
            elif uses[_holder(holder, own)] > 0:
                strange += 1
            else:
                holder[own] = own
                uses[own] = 1
                bytes_live += size[own]
            live[at] = bytes_live
    return strange


def live_spans(
    kind: cython.const[cython.uchar][::1],
    value: cython.const[cython.longlong][::1],
    shared_with: cython.const[cython.longlong][::1],
    uses: cython.longlong[::1],
    holder: cython.longlong[::1],
    top: cython.longlong[::1],
    spans: cython.longlong[:, ::1],
    blocks: cython.longlong[:, ::1],
    order: cython.longlong[::1],
) -> tuple[int, int]:
    """When the values are live, by the events that `replay` takes; returns how many do not fit
    those before, and how many values have a span: ``order`` begins with them, as they begin.

    ``spans`` has of each value the event that begins it and the one that frees it, one more than
    there are where none does; ``blocks`` between which ones it is the last that was put into its
    memory. Both are -1 at first. ``top`` is room for a number per value.
    """
    at: cython.longlong
    own: cython.longlong
    root: cython.longlong
    strange: cython.longlong = 0
    result: cython.longlong = 0
    last: cython.longlong = kind.shape[0]
    with cython.nogil:
        for at in range(last):
            own = value[at]
            root = shared_with[at] if kind[at] == SHARE else own
            if own < 0 or root < 0 or kind[at] > SHARE:
                strange += 1
                continue
            root = _holder(holder, root)
            if (kind[at] == FREE and uses[root] <= 0) or (kind[at] == ALLOCATE and uses[root] > 0):
                strange += 1
                continue
            if spans[own, 0] < 0:
                spans[own, 0] = at
                order[result] = own
                result += 1
            if kind[at] == FREE:
                uses[root] -= 1
                spans[own, 1] = at
                if uses[root] == 0:
                    blocks[top[root], 1] = at
                continue
            if kind[at] == ALLOCATE:
                root = own
            holder[own] = root
            uses[root] += 1
            if uses[root] > 1:
                blocks[top[root], 1] = at
            top[root] = own
            spans[own, 0] = blocks[own, 0] = at
            spans[own, 1] = blocks[own, 1] = last
    return strange, result
