"""The numbers that `line_decode` and its caller share."""

from __future__ import annotations

# What ends a decoding.
OPEN = -1
DONE = 0
SHORT = 1
FULL = 2
ODD = 3

# Places in ``at``.
A_POSITION = 0
A_EVENTS = 1
A_STATS = 2
A_MEMORY = 3
A_WIDTH = 4

# What a line says about itself: places in ``facts``.
F_ID = 0
F_TIME = 1
F_NAME = 2
F_NAME_LENGTH = 3
F_DISPLAY = 4
F_DISPLAY_LENGTH = 5
F_WIDTH = 6

# What is read.
NO_EVENTS = -1
NO_STATS = 0
SOME_STATS = 1
ALL_STATS = 2

NOT_WANTED = 255
"""The role of a stat that is passed over."""
