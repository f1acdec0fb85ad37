"""What answers say, once: facts and tables that every face draws as they are, and their JSON.

Its names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.document.capture import capture_document
    from peakline.document.check import check_document
    from peakline.document.fit import fit_document
    from peakline.document.graph import NO_GRAPH, graph_document
    from peakline.document.hosts import hosts_document, waiting_text
    from peakline.document.memory import live_at, memory_document
    from peakline.document.ops import ops_document, ops_rows, sorted_ops
    from peakline.document.programs import chosen_programs, programs_document
    from peakline.document.steps import steps_document
    from peakline.document.trace import NO_EVENTS, excerpt_between, trace_document

__all__ = [
    "NO_EVENTS",
    "NO_GRAPH",
    "capture_document",
    "check_document",
    "chosen_programs",
    "excerpt_between",
    "fit_document",
    "graph_document",
    "hosts_document",
    "live_at",
    "memory_document",
    "ops_document",
    "ops_rows",
    "programs_document",
    "sorted_ops",
    "steps_document",
    "trace_document",
    "waiting_text",
]

__getattr__ = door(
    __name__,
    {
        "NO_EVENTS": ".trace",
        "NO_GRAPH": ".graph",
        "capture_document": ".capture",
        "check_document": ".check",
        "chosen_programs": ".programs",
        "excerpt_between": ".trace",
        "fit_document": ".fit",
        "graph_document": ".graph",
        "hosts_document": ".hosts",
        "live_at": ".memory",
        "memory_document": ".memory",
        "ops_document": ".ops",
        "ops_rows": ".ops",
        "programs_document": ".programs",
        "sorted_ops": ".ops",
        "steps_document": ".steps",
        "trace_document": ".trace",
        "waiting_text": ".hosts",
    },
)
__dir__ = listed(__name__)
