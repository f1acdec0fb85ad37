"""Memory and time as figures of Plotly, for notebooks; the report draws the same as SVG.

Every function takes a `Profile`. Those of memory keep to one allocator with ``allocator=``, and
take the answer of ``profile.memory()`` as ``answer=`` where it is known already, so that several
figures need one analysis. Each gives a ``plotly.graph_objects.Figure``, or None where the profile
has nothing to show in it; an allocator or a device that is not there is a NotFoundError. What is
drawn is bounded, however large the profile is, and the same profile gives the same figure.

Importing this package loads neither Plotly nor an analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.figures.plotly_figures import (
        churn,
        device_time,
        fragmentation,
        growth_per_step,
        input_pipeline,
        kernels,
        largest_buffers,
        memory_over_time,
        op_stats,
        peak_icicle,
        step_breakdown,
    )

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

__getattr__ = door(__name__, dict.fromkeys(__all__, ".plotly_figures"))
__dir__ = listed(__name__)
