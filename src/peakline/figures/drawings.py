"""All figures as plain data, which the faces of Peakline draw."""

from __future__ import annotations

from peakline.figures.composition import peak_icicle
from peakline.figures.free_memory import fragmentation
from peakline.figures.job_ranks import rank_peaks, rank_times
from peakline.figures.lifetimes import largest_buffers
from peakline.figures.over_time import memory_over_time
from peakline.figures.steps_growth import churn, growth_per_step
from peakline.figures.time_parts import (
    device_time,
    input_pipeline,
    kernels,
    op_stats,
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
    "rank_peaks",
    "rank_times",
    "step_breakdown",
]
