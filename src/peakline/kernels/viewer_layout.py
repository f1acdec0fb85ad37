"""The numbers that the kernels of the trace viewer share with their callers."""

from __future__ import annotations

UNKNOWN, HIDDEN, SHOWN = range(3)
"""What is known of a flow."""
FLOW_ENDS = 1
"""The direction of a flow into an event, where it ends."""

(TEXT, NUMBER, MICROSECONDS, SIGNED_UNLESS_ZERO, UNSIGNED_UNLESS_ZERO, MICROSECONDS_UNLESS_ZERO) = (
    range(6)
)
"""What a gap in a line holds: a text by its number, the digits of a number, or microseconds with
six decimals of a number of picoseconds."""

SHORTER = 1000
"""Picoseconds by which an event is drawn shorter than the one it lies in."""
