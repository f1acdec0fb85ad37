"""What the rows of `replay_waits` are."""

from __future__ import annotations

BLOCKS, HOLDS = 1, 2
"""Its member had nothing else to do at its end; nobody leaves it before all have come."""
