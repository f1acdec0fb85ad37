"""Answers as text on a terminal.

Its names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.render.terminal.capture import print_capture
    from peakline.render.terminal.check import print_checks
    from peakline.render.terminal.diff import print_diff, print_hosts_diff
    from peakline.render.terminal.graph import print_graph
    from peakline.render.terminal.memory import (
        print_fit,
        print_memory,
        print_memory_at,
        print_together,
    )
    from peakline.render.terminal.ops import print_kernels, print_ops, print_ops_by
    from peakline.render.terminal.programs import print_no_memory, print_program, print_programs
    from peakline.render.terminal.steps import print_steps
    from peakline.render.terminal.summary import print_summary
    from peakline.render.terminal.trace import print_excerpt

__all__ = [
    "print_capture",
    "print_checks",
    "print_diff",
    "print_excerpt",
    "print_fit",
    "print_graph",
    "print_hosts_diff",
    "print_kernels",
    "print_memory",
    "print_memory_at",
    "print_no_memory",
    "print_ops",
    "print_ops_by",
    "print_program",
    "print_programs",
    "print_steps",
    "print_summary",
    "print_together",
]

__getattr__ = door(
    __name__,
    {
        "print_capture": ".capture",
        "print_checks": ".check",
        "print_diff": ".diff",
        "print_excerpt": ".trace",
        "print_fit": ".memory",
        "print_graph": ".graph",
        "print_hosts_diff": ".diff",
        "print_kernels": ".ops",
        "print_memory": ".memory",
        "print_memory_at": ".memory",
        "print_no_memory": ".programs",
        "print_ops": ".ops",
        "print_ops_by": ".ops",
        "print_program": ".programs",
        "print_programs": ".programs",
        "print_steps": ".steps",
        "print_summary": ".summary",
        "print_together": ".memory",
    },
)
__dir__ = listed(__name__)
