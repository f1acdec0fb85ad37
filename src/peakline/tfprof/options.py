"""What a view shows: tfprof's options, under tfprof's names."""

from __future__ import annotations

from dataclasses import dataclass

MEASURES = (
    "run_count",
    "exec_micros",
    "accelerator_exec_micros",
    "cpu_exec_micros",
    "requested_bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "parameters",
    "float_ops",
    "definition_count",
)
"""The columns of every matrix of measures, in order. Times are microseconds."""

ORDERS = {
    "bytes": "requested_bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "micros": "exec_micros",
    "accelerator_micros": "accelerator_exec_micros",
    "cpu_micros": "cpu_exec_micros",
    "params": "parameters",
    "float_ops": "float_ops",
}
"""The measure behind each ``order_by`` that means one, largest first."""

SELECTABLE = (*ORDERS, "device", "op_types", "occurrence", "input_shapes", "tensor_value")

EVERYTHING = (".*",)
"""The patterns that take every name, without looking at it."""


@dataclass(frozen=True)
class Options:
    """tfprof's options (tensorflow/core/profiler/tfprof_options.h); the defaults leave nothing out.

    ``step`` -1 means the average over the steps. ``order_by`` is ``name``, ``occurrence`` or a key
    of `ORDERS`. Patterns are RE2 expressions that must match a whole name.
    """

    order_by: str = "name"
    max_depth: int = 2**31 - 1
    min_bytes: int = 0
    min_peak_bytes: int = 0
    min_residual_bytes: int = 0
    min_output_bytes: int = 0
    min_micros: int = 0
    min_accelerator_micros: int = 0
    min_cpu_micros: int = 0
    min_params: int = 0
    min_float_ops: int = 0
    min_occurrence: int = 0
    step: int = -1
    account_type_regexes: tuple[str, ...] = EVERYTHING
    start_name_regexes: tuple[str, ...] = EVERYTHING
    trim_name_regexes: tuple[str, ...] = ()
    show_name_regexes: tuple[str, ...] = EVERYTHING
    hide_name_regexes: tuple[str, ...] = ()
    account_displayed_op_only: bool = False
