"""The numbers that the scanner of JSON events shares with its callers."""

from __future__ import annotations

TIME_ABSENT, TIME_OK, TIME_BAD, TIME_RANGE = range(4)
"""No such member; a time; not a number; a number beyond 2.3e18."""

MAX_DEPTH = 512
"""Open brackets within one object; a deeper one is damage."""

KEY_MIX = 0x9E3779B97F4A7C15
"""Spreads the beginnings of keys over the table of wanted ones (an odd multiplier)."""

OK, CUT, BAD = 0, 1, 2
"""What a walk ends with: a whole value, the end of the bytes, what is no JSON."""

# What a walk expects next.
AT_KEY, AT_VALUE, AT_ITEM, AFTER = range(4)

# Why `scan` stops: it needs more bytes, or room for rows, or everything is read.
MORE, FULL, DONE = 0, 1, 2

# Entries of the state vector.
S_MODE = 0
S_AT = 1  # next byte to look at
S_ROOT = 2  # what holds the events: one of the IN constants
S_ROWS = 3
S_ROOTS = 4  # members of the outermost object in the output
S_DAMAGED = 5  # places
S_FIRST = 6  # offset of the first, -1 when there is none
S_CUT = 7  # offset of the object that the end cuts, -1 when there is none
S_TRIES = 8  # unfinished objects that the search after the end has passed
S_BIG = 9  # objects given up because of their size
S_NEED = 10  # 1 when what lies from S_AT on is the beginning of something unfinished
S_WIDTH = 11

IN_ARRAY, IN_OBJECT, IN_LINES = 0, 1, 2

# Modes.
START, IN_ROOT, EVENTS, SEARCH, END = range(5)

MOST_TRIES = 8
"""Unfinished objects in which whole ones are looked for."""

QUOTE, BACKSLASH, COMMA, COLON = 34, 92, 44, 58
OPEN_ARRAY, CLOSE_ARRAY, OPEN, CLOSE = 91, 93, 123, 125
