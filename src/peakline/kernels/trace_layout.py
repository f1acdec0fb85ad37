"""The numbers that the kernels of traces share with their callers."""

from __future__ import annotations

MOST_ROWS = 4096
"""Rows that the events of one line are spread over at most; what would need more shares the
last."""

SPARED = 8
"""A level is worth its memory when each of its runs spares so many items of the stored level below
it: two runs then take as much as one event of the trace, and a level is read that has five to ten
times fewer items."""
NEVER = 65
"""The level of an event that begins a track: it joins nothing."""
FEW = 64
"""A level with so few items needs no coarser one: they are drawn one by one."""

SKIP = 255
"""Kind of a name whose events are neither spans nor markers."""
MARKER = 254
"""Kind of a name whose events mark a step."""
NOTHING = 253
"""Kind of a single event that is neither, whatever its name says."""
OUTER = 1
"""The kind of span that everything else covers: computation of the host."""

MOST_OPEN = 256
"""How many open events an end is compared with."""

BEGIN, END, MARK = range(3)
"""What happens to an event on its lane: it begins, it ends, it has no length."""
