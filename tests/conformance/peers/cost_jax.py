"""Compile functions with JAX and say what they cost. Runs in the peers' environment.

    python cost_jax.py FOLDER

For each function FOLDER gets ``NAME.hlo``, the serialized HloModuleProto, and ``costs.json`` what
``cost_analysis()`` says of each.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from jax import lax

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def array(*shape: int, kind: str = "float32") -> Any:
    """An argument of which only the shape matters."""
    return jax.ShapeDtypeStruct(shape, kind)


def _convolve(**options: Any) -> Callable[[Any, Any], Any]:
    return lambda x, k: lax.conv_general_dilated(
        x, k, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options
    )


def _loop(x: Any) -> Any:
    return lax.fori_loop(0, 7, lambda _, y: jnp.tanh(y) * 2, x)


def _branch(x: Any) -> Any:
    return lax.cond(x[0] > 0, lambda y: jnp.exp(y) + y, lambda y: y * 2 + 1, x)


def _train(w: Any, x: Any) -> Any:
    return jax.grad(lambda v: jnp.mean((jnp.maximum(x @ v, 0) - 1) ** 2))(w)


PLAIN = {"padding": "VALID", "window_strides": (1, 1)}
CASES: dict[str, Case] = {
    "elementwise": (lambda x: (x + 1) * x - x, (array(33, 5),)),
    "transcendental": (lambda x: jnp.exp(x) + jnp.tanh(x) * lax.erf(x), (array(100),)),
    "power": (lambda x: jnp.power(x, 0.3) + lax.rsqrt(x), (array(100),)),
    "dot": (lambda a, b: a @ b, (array(8, 16), array(16, 4))),
    "batched_dot": (
        lambda a, b: jnp.einsum("bij,bjk->bik", a, b), (array(3, 8, 5), array(3, 5, 2)),
    ),
    "attention": (
        lambda q, k: jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)),
        (array(2, 8, 4), array(2, 8, 4)),
    ),
    "half": (
        lambda a, b: (a @ b).astype("float32"),
        (array(8, 16, kind="bfloat16"), array(16, 4, kind="bfloat16")),
    ),
    "convolution": (_convolve(**PLAIN), (array(2, 9, 9, 3), array(3, 3, 3, 8))),
    "padded": (
        _convolve(padding="SAME", window_strides=(2, 2)), (array(2, 9, 10, 3), array(3, 5, 3, 8)),
    ),
    "dilated": (
        _convolve(padding="SAME", window_strides=(1, 1), rhs_dilation=(2, 3)),
        (array(1, 12, 11, 2), array(3, 3, 2, 4)),
    ),
    "transposed": (
        _convolve(padding=((1, 2), (0, 3)), window_strides=(1, 1), lhs_dilation=(2, 3)),
        (array(1, 7, 6, 2), array(3, 3, 2, 4)),
    ),
    "depthwise": (
        _convolve(padding="VALID", window_strides=(1, 1), feature_group_count=4),
        (array(1, 8, 8, 4), array(3, 3, 1, 8)),
    ),
    "reduce": (lambda x: jnp.sum(x, axis=1), (array(32, 17),)),
    "argmax": (lambda x: jnp.argmax(x, axis=1), (array(32, 17),)),
    "pool": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2), (1, 2, 2), "VALID"),
        (array(3, 8, 8),),
    ),
    "running_sum": (lambda x: jnp.cumsum(x, axis=0), (array(40, 3),)),
    "sort": (jnp.sort, (array(1000),)),
    "sorted_pairs": (
        lambda x, y: lax.sort((x, y), num_keys=1), (array(1000), array(1000, kind="int8")),
    ),
    "gather": (lambda x, i: x[i], (array(50, 4), array(9, kind="int32"))),
    "scatter": (
        lambda x, i, u: x.at[i].add(u), (array(50, 4), array(9, kind="int32"), array(9, 4)),
    ),
    "slice": (lambda x: x[2:10, ::2] * 2, (array(50, 40),)),
    "update": (
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)),
        (array(50, 40), array(5, 40), array(kind="int32")),
    ),
    "dynamic_slice": (
        lambda x, i: lax.dynamic_slice(x, (i, 0), (5, 40)) + 1,
        (array(50, 40), array(kind="int32")),
    ),
    "transpose": (lambda x: jnp.transpose(x, (2, 0, 1)) + 0, (array(4, 5, 6),)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y * 2], 0), (array(4, 5), array(6, 5))),
    "loop": (_loop, (array(64),)),
    "branch": (_branch, (array(64),)),
    "random": (lambda key: jax.random.normal(key, (64,)), (array(2, kind="uint32"),)),
    "train": (_train, (array(16, 4), array(8, 16))),
    "constant": (lambda x: x + jnp.arange(40, dtype="float32") ** 1.5, (array(40),)),
    "integers": (lambda x: (x % 7) // 2 ^ x, (array(64, kind="int32"),)),
    "complex": (lambda x: jnp.abs(x * x), (array(64, kind="complex64"),)),
}  # fmt: skip


def main() -> None:
    folder = Path(sys.argv[1])
    costs = {}
    for name, (function, arguments) in CASES.items():
        compiled = jax.jit(function).lower(*arguments).compile()
        module = compiled.runtime_executable().hlo_modules()[0]
        (folder / f"{name}.hlo").write_bytes(module.as_serialized_hlo_module_proto())
        costs[name] = dict(compiled.cost_analysis())
    (folder / "costs.json").write_text(json.dumps(costs))


if __name__ == "__main__":
    main()
