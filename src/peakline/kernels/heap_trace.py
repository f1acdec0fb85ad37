"""The heap of a compiled program (``HeapSimulatorTrace``, xla/service/hlo.proto)."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.heap_layout import FREE, SHARE

__all__ = ["replay"]


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
