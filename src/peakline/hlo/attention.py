"""What attention costs that a library of GPUs computes in one call.

A call of cuDNN says its shapes in the ``cudnn_fmha_backend_config`` of its ``GpuBackendConfig``
(``xla/service/gpu/backend_configs.proto``), one of Transformer Engine in its attributes
(``transformer_engine/jax/cpp_extensions/attention.py``). Counted are the matrix products, whole: as
a program without the library would count them, in which a mask saves none either.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from peakline.hlo.program import Made, elements, leaves

if TYPE_CHECKING:
    from collections.abc import Callable

_CUDNN = [
    f"__cudnn$fmha{name}"
    for name in ("Softmax", "SoftmaxDropout", "ScaleBiasSoftmax", "ScaleBiasSoftmaxDropout")
]
"""What is called of cuDNN (``xla/service/gpu/cublas_cudnn.cc``); `_BACKWARD` for gradients."""
_BACKWARD = "Backward"
_ENGINE, _ENGINE_BACKWARD = "te_fused_attn_forward_ffi", "te_fused_attn_backward_ffi"
_SIZES = (b"qk_head_dim", b"v_head_dim")
_NUMBER = re.compile(rb"\b(\w++) = (\d++) : i64")


class _Attention(NamedTuple):
    """``scores`` are those of every query for every key, in all heads and of the whole batch;
    ``key_size`` and ``value_size`` the elements of one key and of one value.
    """

    scores: int
    key_size: int
    value_size: int


def attention_cost(made: Made) -> tuple[float, float] | None:
    """Flops and transcendentals of a call; None for a call of anything else.

    Scores and what they weigh are two products; gradients are the scores again, and those of
    values, weights, queries and keys. Each score has one exponential. Raises ArithmeticError,
    LookupError, TypeError or ValueError where the call does not say its shapes.
    """
    known = _CALLS.get(made.proto.custom_call_target)
    if known is None:
        return None
    read, is_backward = known
    scores, key_size, value_size = read(made)
    each = 3 * key_size + 2 * value_size if is_backward else key_size + value_size
    return 2.0 * scores * each, float(scores)


def _of_cudnn(made: Made) -> _Attention:
    config = json.loads(made.proto.backend_config)["cudnn_fmha_backend_config"]
    batch, heads, queries, keys = map(int, config["intermediate_tensor_shape"]["dimensions"])
    rows = batch * heads * queries
    # Queries, and either the result or, with the same shape, its gradient: both are stored by row.
    is_backward = made.proto.custom_call_target.endswith(_BACKWARD)
    result = made.operands[4].shape if is_backward else leaves(made.shape)[0][1]
    sizes = (elements(shape) // rows for shape in (made.operands[0].shape, result))
    return _Attention(rows * keys, *sizes)


def _of_engine(made: Made) -> _Attention:
    found = {name: int(value) for name, value in _NUMBER.findall(made.proto.backend_config)}
    rows = found[b"input_batch"] * found[b"attn_heads"] * found[b"q_max_seqlen"]
    # Before version 2.3 keys and values had one size.
    sizes = (found[name if name in found else b"head_dim"] for name in _SIZES)
    return _Attention(rows * found[b"kv_max_seqlen"], *sizes)


_CALLS: dict[str, tuple[Callable[[Made], _Attention], bool]] = {
    **dict.fromkeys(_CUDNN, (_of_cudnn, False)),
    **dict.fromkeys([f"{name}{_BACKWARD}" for name in _CUDNN], (_of_cudnn, True)),
    _ENGINE: (_of_engine, False),
    _ENGINE_BACKWARD: (_of_engine, True),
}
