"""When the ranks of a job are done if some of them work for another time than they did."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.waits_layout import BLOCKS, HOLDS

__all__ = ["replay_waits"]


def replay_waits(
    events: cython.const[cython.longlong][::1],
    member: cython.const[cython.longlong][::1],
    collective: cython.const[cython.longlong][::1],
    worked_arrive: cython.const[cython.longlong][::1],
    worked_end: cython.const[cython.longlong][::1],
    transfer: cython.const[cython.longlong][::1],
    flags: cython.const[cython.uchar][::1],
    behind: cython.const[cython.longlong][::1],
    now: cython.longlong[::1],
    worked: cython.longlong[::1],
    last: cython.longlong[::1],
    arrived: cython.longlong[::1],
    ended: cython.longlong[::1],
) -> None:
    """Move ``now``, the time of each member, to the last of its events, and ``worked``, what it had
    worked by then.

    ``events`` are what happens in order: row n of a collective (its ``member`` comes to it), or the
    number of rows more: it leaves it. A member works from one to the next of its events as long as
    ``worked_arrive`` and ``worked_end`` say, but leaves a collective that BLOCKS it not before that
    has ended: ``transfer`` after the ``last`` member came, of one that HOLDS its members up, else
    after it came itself. A row ``behind`` another (-1: none) was ready before that had ended, and
    comes with its end.
    ``last`` is given as the smallest number; ``arrived`` and ``ended`` are filled for each row.
    """
    rows: cython.longlong = member.shape[0]
    members: cython.longlong = now.shape[0]
    collectives: cython.longlong = last.shape[0]
    k: cython.longlong
    row: cython.longlong
    who: cython.longlong
    which: cython.longlong
    time: cython.longlong
    with cython.nogil:
        for k in range(events.shape[0]):
            row = events[k]
            if row < 0 or row >= 2 * rows:
                continue
            if row < rows:
                who, which = member[row], collective[row]
                if who < 0 or who >= members or which < 0 or which >= collectives:
                    continue
                time = now[who] + worked_arrive[row] - worked[who]
                now[who], worked[who] = time, worked_arrive[row]
                if 0 <= behind[row] < rows:
                    time = ended[behind[row]]
                arrived[row] = time
                last[which] = max(last[which], time)
                continue
            row -= rows
            who, which = member[row], collective[row]
            if who < 0 or who >= members or which < 0 or which >= collectives:
                continue
            ended[row] = (last[which] if flags[row] & HOLDS else arrived[row]) + transfer[row]
            time = now[who] + worked_end[row] - worked[who]
            if flags[row] & BLOCKS and ended[row] > time:
                time = ended[row]
            now[who], worked[who] = time, worked_end[row]
