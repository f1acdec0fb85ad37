"""How much of an answer each face shows, beside each other: rows, parts, and the least of a share.

Documents are made for any number of rows; a face requests what it has room for, and how much that
is stands here alone. Widths, colours and the like are the face's own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Most:
    """So many are shown on a terminal, in a report and in a notebook; 0 where a face has none."""

    terminal: int = 0
    report: int = 0
    notebook: int = 0


ROWS = Most(report=12, notebook=8)
"""Rows of a table, and items of a list, that nothing else is said of."""
ALLOCATORS = Most(report=8, notebook=6)
"""Allocators with a section, or a row, of their own: those with findings, then the largest."""
IN_FULL = Most(notebook=3)
"""Allocators, programs and failures of which all is shown."""
OPS = Most(terminal=20, report=20)
KERNELS = Most(terminal=20, report=20)
STAGES = Most(report=20)
STEPS = Most(notebook=24)
PROGRAMS = Most(terminal=20, report=30)
PROGRAM_GROUPS = Most(terminal=8, report=12)
"""Scopes, and lines, of what a program has live."""
NEEDS = Most(terminal=32, report=8)
"""Programs that are shown with what they have live, where no allocator recorded anything."""
FAILURES = Most(terminal=3, report=3)
"""Failed requests of which what their program has live is shown."""
GRAPHS = Most(terminal=100, report=12)
NODES = Most(terminal=20, report=12)
"""Kinds of nodes, and nodes that break a rule."""
BUFFERS = Most(report=15)
GROWN = Most(report=10)
"""Kinds of buffers that grew, or come and go."""
PHRASES = Most(report=4)
"""Findings that the verdict of a report names."""
FACTS = Most(notebook=12)
FINDINGS = Most(notebook=5)
"""Findings with what to do about them."""
CHECKS = Most(notebook=24)
BEHIND = Most(notebook=8)
"""Checks that failed with the rows behind them."""
FITS = Most(notebook=8)
DEVICES = Most(notebook=24)
PATH = Most(notebook=12)
PARTS = Most(notebook=6)
"""Allocators of a comparison."""
SESSIONS = Most(notebook=20)
HOSTS = Most(notebook=40)
NOTES = Most(notebook=10)
RANKS = Most(report=256)
"""Ranks of a job as rows."""
ANSWER_ROWS = Most(notebook=10)
ANSWER_COLUMNS = Most(notebook=12)

LEAST_OP = 0.01
"""An op with less of the peak is not worth a place in the head of a report."""
LEAST_PART = 0.005
"""A part of a step with less of its time is not drawn."""
SMALL_BYTES, SMALL_SHARE = 1 << 20, 0.01
"""Nobody has to know how often an allocator with less, or less of the largest, comes near its
peak."""

# What the page shows.
SUMMARY = 4
"""Allocators, programs and names of steps of the page's summary."""
GRAPH_OPS = 8
SESSION_FINDINGS, SESSION_HOSTS = 3, 12
"""Of a session in the list."""
TIMELINE_FINDINGS = 12
"""Rows of a finding that the timeline marks."""
HEAT_ROWS = 24
HEAT_RANKS, HEAT_STEPS = 64, 100
"""Rows and columns of the heat map in a job's report."""
LITTLE = 0.005
"""A change below this share is neither good nor bad."""
GROWS = 1e-3
"""Growth below this share of the peak in a step is none."""
EXPLAINS = 0.25
"""An event is named that takes so much of the difference of two steps."""
