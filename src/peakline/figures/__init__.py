"""Memory and time as figures: Plotly, for notebooks and for the report.

Every function takes a `Profile`. Those of memory keep to one allocator with ``allocator=``, and
take the answer of ``profile.memory()`` as ``answer=`` where it is known already, so that several
figures need one analysis. Each gives a ``plotly.graph_objects.Figure``, or None where the profile
has nothing to show in it; an allocator or a device that is not there is a NotFoundError. What is
drawn is bounded, however large the profile is, and the same profile gives the same figure.

Importing this package loads neither Plotly nor an analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door

if TYPE_CHECKING:
    from peakline.figures.composition import peak_icicle
    from peakline.figures.free_memory import fragmentation
    from peakline.figures.lifetimes import largest_buffers
    from peakline.figures.over_time import memory_over_time
    from peakline.figures.steps_growth import growth_per_step
    from peakline.figures.time_parts import device_time, input_pipeline, step_breakdown
    from peakline.figures.top_ops import kernels, op_stats
    from peakline.figures.turnover import churn

__all__ = [
    "churn",
    "device_time",
    "fragmentation",
    "growth_per_step",
    "input_pipeline",
    "kernels",
    "largest_buffers",
    "memory_over_time",
    "op_stats",
    "peak_icicle",
    "step_breakdown",
]

_HOMES = {
    "churn": ".turnover",
    "device_time": ".time_parts",
    "fragmentation": ".free_memory",
    "growth_per_step": ".steps_growth",
    "input_pipeline": ".time_parts",
    "kernels": ".top_ops",
    "largest_buffers": ".lifetimes",
    "memory_over_time": ".over_time",
    "op_stats": ".top_ops",
    "peak_icicle": ".composition",
    "step_breakdown": ".time_parts",
}
__getattr__ = door(__name__, _HOMES)
