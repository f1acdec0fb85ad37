"""Memory as figures: Plotly, for notebooks and for the report.

Every function takes a `Profile`, keeps to one allocator with ``allocator=``, and takes the answer
of ``profile.memory()`` as ``answer=`` where it is known already, so that several figures need one
analysis. It gives a ``plotly.graph_objects.Figure``, or None where the profile has nothing to show
in it; an allocator that is not there is a NotFoundError. What is drawn is bounded, however large
the profile is, and the same profile gives the same figure.

Importing this package loads neither Plotly nor an analysis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peakline.figures.composition import peak_icicle
    from peakline.figures.free_memory import fragmentation
    from peakline.figures.lifetimes import largest_buffers
    from peakline.figures.over_time import memory_over_time
    from peakline.figures.steps_growth import growth_per_step
    from peakline.figures.turnover import churn

__all__ = [
    "churn",
    "fragmentation",
    "growth_per_step",
    "largest_buffers",
    "memory_over_time",
    "peak_icicle",
]

_HOMES = {
    "churn": "turnover",
    "fragmentation": "free_memory",
    "growth_per_step": "steps_growth",
    "largest_buffers": "lifetimes",
    "memory_over_time": "over_time",
    "peak_icicle": "composition",
}


def __getattr__(name: str) -> Any:
    """Import the module that holds ``name`` on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
