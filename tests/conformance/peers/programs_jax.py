"""Compile programs with JAX, dump them, and record them running. Runs in the peers' environment.

    python programs_jax.py FOLDER

FOLDER/dump gets what ``--xla_dump_to`` writes, FOLDER/profile what ``jax.profiler`` records,
FOLDER/assignments the buffer assignment that each executable holds, and FOLDER/programs.json what
JAX says of each function, whose module is ``jit_NAME``: its sizes, its costs, and how many devices
run it how often.
"""

import functools
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    f"--xla_dump_to={sys.argv[1]}/dump --xla_dump_hlo_as_proto "
    "--xla_force_host_platform_device_count=4"
)

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

_SIZES = "argument output alias temp generated_code".split()


@dataclass
class Case:
    """A function, what it is called with, and how often."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    calls: int = 2
    devices: int = 1


def array(*shape: int, kind: str = "float32") -> Any:
    """Numbers between -1 and 1, or zeros of another type."""
    if kind.startswith(("float", "bfloat")):
        count = int(np.prod(shape))
        return jnp.asarray(np.sin(np.arange(count, dtype=np.float32)).reshape(shape), kind)
    return jnp.zeros(shape, kind)


# People who train.


def _dense(weights: Any, x: Any) -> Any:
    for w in weights:
        x = jnp.tanh(x @ w)
    return x


def _sgd(weights: Any, x: Any) -> Any:
    slope = jax.grad(lambda v: jnp.mean(_dense(v, x) ** 2))(weights)
    return [w - 0.1 * g for w, g in zip(weights, slope, strict=True)]


def _adam(state: dict[str, Any], batch: tuple[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    def loss(parameters: dict[str, Any]) -> Any:
        hidden = jax.nn.gelu(batch[0] @ parameters["in"]["w"] + parameters["in"]["b"])
        return jnp.mean((hidden @ parameters["out"] - batch[1]) ** 2)

    value, slope = jax.value_and_grad(loss)(state["parameters"])
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["first"], slope)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["second"], slope)
    parameters = jax.tree.map(
        lambda p, m, v: p - 0.01 * m / (jnp.sqrt(v) + 1e-8), state["parameters"], first, second
    )
    return {"parameters": parameters, "first": first, "second": second}, {"loss": value}


def _remat(weights: Any, x: Any) -> Any:
    def loss(weights: Any) -> Any:
        y = x
        for w in weights:
            y = jax.checkpoint(lambda y, w: jnp.sin(y @ w) * jax.nn.sigmoid(y))(y, w)
        return jnp.sum(y**2)

    return jax.grad(loss)(weights)


def _scan_layers(weights: Any, x: Any) -> Any:
    def loss(weights: Any) -> Any:
        return jnp.sum(lax.scan(lambda y, w: (jnp.tanh(y @ w), jnp.sum(y)), x, weights)[0])

    return jax.grad(loss)(weights)


def _convolutions(x: Any, kernels: Any) -> Any:
    def loss(kernels: Any) -> Any:
        y = x
        for kernel in kernels:
            y = lax.conv_general_dilated(
                y, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            y = lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1),
                                  "VALID")  # fmt: skip
        return jnp.sum(y**2)

    return jax.grad(loss)(kernels)


def _attention(q: Any, k: Any, v: Any) -> Any:
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


@jax.custom_vjp
def _clipped(x: Any) -> Any:
    return jnp.exp(x)


_clipped.defvjp(
    lambda x: (jnp.exp(x), jnp.exp(x)), lambda factor, slope: (jnp.clip(slope * factor, -1, 1),)
)


def _half(weights: Any, x: Any) -> Any:
    return jax.grad(lambda v: _dense(v, x).astype(jnp.float32).sum())(weights)


# People who compute.


def _known_loop(x: Any) -> Any:
    return lax.fori_loop(0, 5, lambda n, y: jnp.sort(jnp.cos(y) * n, 0), x)


def _unknown_loop(x: Any, limit: Any) -> Any:
    def body(state: Any) -> Any:
        number, y = state
        return number + 1, y @ y / (1 + jnp.abs(y).max())

    return lax.while_loop(lambda s: (s[0] < 20) & (jnp.sum(s[1]) < limit), body, (0, x))


def _branches(x: Any, choice: Any) -> Any:
    return lax.switch(
        choice, [lambda y: jnp.sort(y @ y, 0), lambda y: jnp.cumsum(y, 1), jnp.transpose], x
    )


def _linear_algebra(a: Any, b: Any) -> Any:
    whole = a @ a.T + 64 * jnp.eye(a.shape[0])
    lower = jnp.linalg.cholesky(whole)
    return jax.scipy.linalg.solve_triangular(lower, b, lower=True), jnp.linalg.solve(whole, b)


def _fourier(x: Any) -> Any:
    return jnp.fft.irfft2(jnp.fft.rfft2(x) * 2), jnp.fft.fft(x[0])


def _table(x: Any, at: Any, u: Any) -> Any:
    return x[at], x.at[at].add(u), jnp.take_along_axis(x[:9], at[:, None] % x.shape[1], axis=1)


def _constant(x: Any) -> Any:
    return x + jnp.asarray(np.random.default_rng(0).normal(size=(256, 64)), jnp.float32)


def _random(key: Any) -> Any:
    one, other = jax.random.split(key)
    return jax.random.normal(one, (100,)), jax.random.permutation(other, 50)


def _integers(x: Any, mask: Any) -> dict[str, Any]:
    wide = x.astype(jnp.int32)
    return {"sum": wide.sum(), "odd": (x % 2 == 1) & mask, "narrow": (wide * 3).astype(jnp.int8)}


def _nested(x: Any) -> Any:
    return {"a": (x + 1, {"b": [x * 2, x[0]]}), "c": x, "d": ()}


def _sorted(x: Any, y: Any) -> Any:
    a, b = lax.sort((x, y), num_keys=1)
    return jnp.argsort(b), lax.top_k(a * b, 5)


def _empty(x: Any) -> Any:
    return x[:0], x[:, :0] @ x[:0].T[:0]


def _updates(cache: Any, new: Any, at: Any) -> Any:
    return lax.dynamic_update_slice(cache, new, (at, 0)), cache[3] * 2


# People with several devices.


def _mesh() -> Any:
    return jax.make_mesh((2, 2), ("x", "y"))


def _spread(x: Any, *parts: str | None) -> Any:
    return jax.device_put(x, NamedSharding(_mesh(), PartitionSpec(*parts)))


def _shard_map(x: Any) -> Any:
    def part(block: Any) -> Any:
        return lax.psum(jnp.sin(block) @ block.T, "y"), lax.all_gather(block[:2], "x")

    return jax.shard_map(
        part, mesh=_mesh(), in_specs=PartitionSpec("x", "y"),
        out_specs=(PartitionSpec("x", None), PartitionSpec(None, "x", "y")), check_vma=False,
    )(x)  # fmt: skip


def cases() -> dict[str, Case]:
    """Every function by its name."""
    square = array(64, 64)
    state = {"in": {"w": array(32, 64), "b": array(64)}, "out": array(64, 8)}
    moments = jax.tree.map(jnp.zeros_like, state)
    adam = {"parameters": state, "first": moments, "second": moments}
    heads = array(2, 33, 3, 16)
    return {
        "sgd": Case(_sgd, ([square] * 5, array(30, 64))),
        "donated": Case(_sgd, ([square] * 5, array(30, 64)), {"donate_argnums": (0,)}),
        "adam": Case(
            _adam, (adam, (array(16, 32), array(16, 8))), {"donate_argnums": (0,)}, calls=3
        ),
        "remat": Case(_remat, ([square] * 7, array(50, 64))),
        "scan_layers": Case(_scan_layers, (array(6, 64, 64), array(10, 64)), calls=3),
        "convolutions": Case(_convolutions, (array(2, 16, 12, 4), [array(3, 3, 4, 4)] * 2)),
        "attention": Case(_attention, (heads, heads, heads)),
        "attention_slope": Case(
            jax.grad(lambda *a: jnp.sum(_attention(*a) ** 2), (0, 1, 2)), (heads, heads, heads)
        ),
        "custom_slope": Case(jax.grad(lambda x: _clipped(x * 2).sum()), (array(500),)),
        "half": Case(
            _half, ([array(64, 64, kind="bfloat16")] * 3, array(20, 64, kind="bfloat16"))
        ),
        "deep": Case(
            jax.grad(lambda w, x: jnp.sum(_dense(w, x))), ([square] * 40, array(10, 64))
        ),
        "known_loop": Case(_known_loop, (square,), calls=4),
        "unknown_loop": Case(_unknown_loop, (square, jnp.float32(1e9)), calls=3),
        "branches": Case(_branches, (square, jnp.int32(1))),
        "linear_algebra": Case(_linear_algebra, (square, array(64, 3))),
        "fourier": Case(_fourier, (square,)),
        "table": Case(_table, (array(50, 8), array(9, kind="int32"), array(9, 8))),
        "constant": Case(_constant, (array(256, 64),)),
        "random": Case(_random, (jax.random.key(3),)),
        "integers": Case(_integers, (array(77, kind="int8"), array(77, kind="bool"))),
        "nested": Case(_nested, (array(33, 5),)),
        "sorted": Case(_sorted, (array(300), array(300))),
        "empty": Case(_empty, (square,)),
        "updates": Case(
            _updates, (square, array(4, 64), jnp.int32(2)), {"donate_argnums": (0,)}, calls=5
        ),
        "scalar": Case(lambda x: x + 1, (jnp.float32(2),), calls=7),
        "small_loss": Case(lambda x: jnp.mean(x**2), (square,)),
        "sharded": Case(
            lambda x, w: jnp.tanh(x @ w), (_spread(square, "x", None), _spread(square, None, "y")),
            devices=4,
        ),
        "shard_map": Case(_shard_map, (_spread(square, "x", "y"),), devices=4, calls=3),
    }  # fmt: skip


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; XLA's module is named after it."""

    @functools.wraps(function)
    def named(*given: Any) -> Any:
        return function(*given)

    named.__name__ = name
    return named


def main() -> None:
    made = cases()
    folder = Path(sys.argv[1])
    (folder / "assignments").mkdir()
    ready, said = {}, {}
    for name, case in made.items():
        compiled = jax.jit(_named(name, case.function), **case.options).lower(*case.arguments)
        ready[name] = compiled.compile()
        sizes = ready[name].memory_analysis()
        (folder / "assignments" / f"{name}.pb").write_bytes(
            sizes.serialized_buffer_assignment_proto
        )
        said[name] = {
            "memory": {part: getattr(sizes, f"{part}_size_in_bytes") for part in _SIZES},
            "peak": sizes.peak_memory_in_bytes,
            "cost": dict(ready[name].cost_analysis() or {}),
            "runs": case.calls * case.devices,
        }
    mapped = jax.pmap(lambda y: lax.psum(jnp.sin(y) @ y.T, "i"), axis_name="i")
    blocks = array(4, 16, 8)
    jax.block_until_ready(mapped(blocks))
    # What is donated is gone after a call.
    given = {
        name: [
            jax.tree.map(jnp.copy, case.arguments) if case.options else case.arguments
            for _ in range(case.calls)
        ]
        for name, case in made.items()
    }
    with jax.profiler.trace(folder / "profile"):
        for turn in range(max(case.calls for case in made.values())):
            with jax.profiler.StepTraceAnnotation("train", step_num=turn):
                for name, arguments in given.items():
                    if turn < len(arguments):
                        jax.block_until_ready(ready[name](*arguments[turn]))
                jax.block_until_ready(mapped(blocks))
    said["_fun"] = {"runs": 4 * (turn + 1)}
    (folder / "programs.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main()
