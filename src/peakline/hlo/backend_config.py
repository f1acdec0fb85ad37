"""What XLA writes about a call of a GPU library, as XProf 2.24.2 reads it.

A call of cuBLAS carries JSON of a ``GpuBackendConfig`` (``xla/service/gpu/backend_configs.proto``).
XProf takes it by the definition of its own day: a field that was taken out since, such as
``wait_on_operation_queues``, or is newer, is an error.
"""

from __future__ import annotations

import json
from typing import Any

_DOT = dict.fromkeys(
    ("lhs_contracting_dimensions", "rhs_contracting_dimensions", "lhs_batch_dimensions",
     "rhs_batch_dimensions")
)  # fmt: skip
_EPILOGUES = frozenset(
    "DEFAULT BIAS RELU BIAS_RELU GELU GELU_AUX BIAS_GELU BIAS_GELU_AUX SILU BIAS_SILU".split()
)
_PRODUCT: dict[str, Any] = {
    **dict.fromkeys(
        "selected_algorithm alpha_real alpha_imag beta lhs_stride rhs_stride grad_x grad_y "
        "damax_output autotune_workspace_size scale_mode has_d_scale".split()
    ),
    "dot_dimension_numbers": _DOT,
    "precision_config": dict.fromkeys(("operand_precision", "algorithm")),
    "epilogue": _EPILOGUES,
}
_CONFIG: dict[str, Any] = {
    **dict.fromkeys(
        "operation_queue_id cudnn_conv_backend_config bitcast_backend_config "
        "collective_backend_config fusion_backend_config cudnn_norm_backend_config "
        "cudnn_fmha_backend_config custom_call_backend_config block_scaled_dot_backend_config "
        "native_emitter_backend_config collective_metadata_backend_config dynamic_slice_config "
        "force_earliest_schedule".split()
    ),
    "gemm_backend_config": _PRODUCT,
    "grouped_gemm_backend_config": {
        "gemm_backend_config": _PRODUCT,
        "ragged_dot_dimension_numbers": None,
    },
    "reification_cost": dict.fromkeys(
        "end_to_end_cycles exec_time_us compute_time_us memory_access_time_us name".split()
    ),
    "device_type": frozenset(("DEVICE_TYPE_INVALID", "DEVICE_TYPE_DEVICE", "DEVICE_TYPE_HOST")),
}
"""Fields of messages by name; names of an enum; None is anything."""


def contracted(config: bytes) -> list[int] | None:
    """The dimensions of the left operand that a product sums over; None where it is not read.

    Raises ValueError where a dimension is no number.
    """
    if not config:
        return []
    try:
        read = json.loads(config)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict) or not _is_known(read, _CONFIG):
        return None
    numbers = (read.get("gemm_backend_config") or {}).get("dot_dimension_numbers") or {}
    return [int(one) for one in numbers.get("lhs_contracting_dimensions") or ()]


def _is_known(value: Any, expected: Any) -> bool:
    if expected is None or value is None:
        return True
    if isinstance(value, list):
        return all(_is_known(one, expected) for one in value)
    if isinstance(expected, frozenset):
        return isinstance(value, int) or value in expected
    return isinstance(value, dict) and all(
        name in expected and _is_known(part, expected[name]) for name, part in value.items()
    )
