"""Compile functions with JAX, and each again as advice would have it. Runs in the peers'
environment.

    python advised_jax.py FOLDER

FOLDER gets what ``--xla_dump_to`` writes, and ``memory.json`` what ``memory_analysis()`` says of
``NAME`` and of ``NAME_followed``.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    f"--xla_dump_to={sys.argv[1]} --xla_dump_hlo_as_proto --xla_dump_hlo_module_re=jit_.*"
)

import jax
import jax.numpy as jnp
from jax import lax

jax.config.update("jax_enable_x64", True)  # noqa: FBT003 (its way)

Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def array(*shape: int, kind: str = "float32") -> Any:
    """An argument of which only the shape matters."""
    return jax.ShapeDtypeStruct(shape, kind)


def _loss(ws: Any, x: Any) -> Any:
    for w in ws:
        x = jnp.tanh(x @ w)
    return jnp.mean(x**2)


def _train(ws: Any, x: Any) -> Any:
    return [w - 0.1 * g for w, g in zip(ws, jax.grad(_loss)(ws, x), strict=True)]


def _momentum(state: Any, x: Any) -> Any:
    ws, ms = state
    ms = [0.9 * m + g for m, g in zip(ms, jax.grad(_loss)(ws, x), strict=True)]
    return [w - 0.1 * m for w, m in zip(ws, ms, strict=True)], ms


def _gradient(features: Callable[..., Any]) -> Callable[..., Any]:
    """Features that are cheap to make are needed again at the end; between lies the peak."""

    def loss(w: Any, x: Any, f: Any) -> Any:
        wide = jnp.sort(features(w, x, f), axis=0)
        return jnp.sum(jnp.sort(wide * wide, axis=1)[:, :7] ** 3)

    return jax.grad(loss)


def _features(w: Any, x: Any, f: Any) -> Any:
    return jnp.tanh(x[:, None] * f) @ w


@jax.custom_vjp
def _made_again(w: Any, x: Any, f: Any) -> Any:
    return _features(w, x, f)


def _forward(w: Any, x: Any, f: Any) -> Any:
    return _features(w, x, f), (w, x, f)


def _backward(held: Any, gradient: Any) -> Any:
    # Tied to the gradient: on CPUs XLA would make one of both again.
    w, x, f = held
    return jax.vjp(_features, w, x + 0 * gradient[0, 0], f)[1](gradient)


_made_again.defvjp(_forward, _backward)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.T) @ v


def _of_map(q: Any, k: Any, v: Any) -> Any:
    halves = q.reshape(2, q.shape[0] // 2, q.shape[1])
    return lax.map(lambda part: _attention(part, k, v), halves).reshape(q.shape[0], v.shape[1])


def _heads(q: Any, k: Any, v: Any) -> Any:
    weights = jnp.exp(jnp.einsum("bqd,bkd->bqk", q, k))
    return jnp.einsum("bqk,bkd->bqd", weights, v) / jnp.sum(weights, -1, keepdims=True)


def _heads_of_map(q: Any, k: Any, v: Any) -> Any:
    halves = [one.reshape(2, one.shape[0] // 2, *one.shape[1:]) for one in (q, k, v)]
    return lax.map(lambda part: _heads(*part), tuple(halves)).reshape(q.shape)


def _sorted(x: Any) -> Any:
    a = jnp.sort(x, axis=0)
    b = jnp.sort(a * 2, axis=1)
    c = jnp.sort(a + b.T, axis=0)
    return jnp.sum(a[:3] + b[:3] + c[:3])


def _gathered(x: Any, rows: Any) -> Any:
    a = x[rows]
    b = jnp.concatenate([a[::-1], a], axis=1)
    return jnp.sort(b.T @ jnp.ones((b.shape[0],), b.dtype)), b[:3]


def _reversed(w: Any, x: Any) -> Any:
    """What is read of the parameter later is copied before."""
    new = w - 0.1 * jax.grad(lambda v: _loss([v], x))(w)
    return new, jnp.sum(jnp.sort(new, axis=0) @ w[::-1])


def _needed_later(w: Any) -> Any:
    """The parameter is read again when the result of its size is there."""
    new = jnp.sort(w, axis=0)
    return new, jnp.sort(new @ w, axis=0)[0]


def _of_sorted(w: Any, x: Any, f: Any) -> Any:
    """Cheap, but what it is made of is not held."""
    return jnp.tanh(jnp.sort(x[:, None] * f, axis=0)) @ w


WEIGHTS = [array(256, 256)] * 4
QUERIES = array(1024, 64), array(2048, 64), array(2048, 64)
FEATURES = array(2000, 300), array(1000), array(2000)
CASES: dict[str, tuple[Case, Case]] = {
    "donate_sgd": (
        (_train, (WEIGHTS, array(64, 256)), {}),
        (_train, (WEIGHTS, array(64, 256)), {"donate_argnums": (0,)}),
    ),
    "donate_momentum": (
        (_momentum, ((WEIGHTS, WEIGHTS), array(64, 256)), {}),
        (_momentum, ((WEIGHTS, WEIGHTS), array(64, 256)), {"donate_argnums": (0,)}),
    ),
    "rematerialise_features": (
        (_gradient(_features), FEATURES, {}),
        (_gradient(_made_again), FEATURES, {}),
    ),
    "chunk_attention": ((_attention, QUERIES, {}), (_of_map, QUERIES, {})),
    "chunk_heads": (
        (_heads, (array(8, 200, 16),) * 3, {}),
        (_heads_of_map, (array(8, 200, 16),) * 3, {}),
    ),
    "lower_precision_sorted": (
        (_sorted, (array(512, 512, kind="float64"),), {}),
        (_sorted, (array(512, 512),), {}),
    ),
    "lower_precision_attention": (
        (_attention, tuple(array(*one.shape, kind="float64") for one in QUERIES), {}),
        (_attention, QUERIES, {}),
    ),
    "lower_precision_gathered": (
        (_gathered, (array(50, 300, kind="float64"), array(2000, kind="int32")), {}),
        (_gathered, (array(50, 300), array(2000, kind="int32")), {}),
    ),
    "donate_reversed": (
        (_reversed, (array(256, 256), array(64, 256)), {}),
        (_reversed, (array(256, 256), array(64, 256)), {"donate_argnums": (0,)}),
    ),
    "none_donate_needed_later": (
        (_needed_later, (array(256, 256),), {}),
        (_needed_later, (array(256, 256),), {"donate_argnums": (0,)}),
    ),
    "none_donate_other_type": (
        (lambda x: jnp.sort(x, axis=0).T.astype("float64"), (array(256, 256),), {}),
        (lambda x: jnp.sort(x, axis=0).T.astype("float64"), (array(256, 256),), {}),
    ),
    "none_rematerialise_of_sorted": (
        (_gradient(_of_sorted), FEATURES, {}),
        (_gradient(jax.checkpoint(_of_sorted)), FEATURES, {}),
    ),
}


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; XLA's module is named after it."""

    def named(*given: Any) -> Any:
        return function(*given)

    named.__name__ = name
    return named


def main() -> None:
    sizes = {}
    for name, cases in CASES.items():
        for case, (function, arguments, options) in zip(
            (name, f"{name}_followed"), cases, strict=True
        ):
            named = lambda *given, _function=function: _function(*given)  # noqa: E731 (the name is set)
            named.__name__ = case
            compiled = jax.jit(named, **options).lower(*arguments).compile()
            result = compiled.memory_analysis()
            sizes[case] = {
                part: getattr(result, f"{part}_size_in_bytes")
                for part in ("argument", "output", "alias", "temp")
            }
    (Path(sys.argv[1]) / "memory.json").write_text(json.dumps(sizes))


if __name__ == "__main__":
    main()
