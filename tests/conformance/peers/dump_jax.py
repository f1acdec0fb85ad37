"""Compile functions with JAX, with XLA's own dump of each. Runs in the peers' environment.

    python dump_jax.py FOLDER

FOLDER gets what ``--xla_dump_to`` writes, and ``memory.json`` what ``memory_analysis()`` says of
each function, whose module is ``jit_NAME``.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    f"--xla_dump_to={sys.argv[1]} --xla_dump_hlo_as_proto --xla_dump_hlo_module_re=jit_.* "
    "--xla_force_host_platform_device_count=2"
)

import jax
import jax.numpy as jnp
from jax import lax

Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def array(*shape: int, kind: str = "float32") -> Any:
    """An argument of which only the shape matters."""
    return jax.ShapeDtypeStruct(shape, kind)


def _scan(x: Any, ws: Any) -> Any:
    return lax.scan(lambda c, w: (jnp.tanh(c @ w), jnp.sum(c * c)), x, ws)


def _scan_grad(x: Any, ws: Any) -> Any:
    return jax.grad(lambda v: _scan(x, v)[0].sum())(ws)


def _while(x: Any) -> Any:
    def body(state: Any) -> Any:
        n, y, z = state
        return n + 1, jnp.sin(y) @ jnp.cos(z), jnp.roll(y, 1, 0) + z

    return lax.while_loop(lambda s: s[0] < 9, body, (0, x, x.T))


def _cond(x: Any, flag: Any) -> Any:
    return lax.cond(flag, lambda y: jnp.sort(y @ y, 0) @ y, lambda y: jnp.fft.ifft(y).real, x)


def _sort(x: Any, y: Any) -> Any:
    a, b = lax.sort((x, y), num_keys=1)
    return jnp.argsort(b), jnp.cumsum(a), lax.top_k(a * b, 5)


def _convolve(x: Any, ks: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")

    def loss(ks: Any) -> Any:
        y = x
        for k in ks:
            y = jax.nn.relu(
                lax.conv_general_dilated(y, k, (1, 1), "SAME", dimension_numbers=numbers)
            )
            y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.sum(y**2)

    return jax.grad(loss)(ks)


def _attention(q: Any, k: Any, v: Any) -> Any:
    def loss(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8)
        return jnp.sum(jnp.einsum("bhqk,bkhd->bqhd", weights, v) ** 2)

    return jax.grad(loss, (0, 1, 2))(q, k, v)


def _layers(count: int, wrap: Callable[..., Any] = lambda f: f) -> Callable[..., Any]:
    def loss(ws: Any, x: Any) -> Any:
        layer = wrap(lambda y, w: jnp.tanh(y @ w) * jax.nn.sigmoid(y))
        for n in range(count):
            x = layer(x, ws[n])
        return jnp.mean(x**2)

    return jax.grad(loss)


def _update(ws: Any, x: Any) -> Any:
    return [w - 0.1 * g for w, g in zip(ws, _layers(len(ws))(ws, x), strict=True)]


def _mapped(x: Any) -> Any:
    return jax.pmap(lambda y: lax.psum(jnp.sin(y) @ y.T, "i"), axis_name="i")(x)


def _many(x: Any) -> Any:
    """More than a thousand values, sizes and lifetimes all different."""
    held = []
    for n in range(420):
        y = jnp.sort(x[: 40 + (n * 37) % 211] * (n + 1))
        held.append(y)
        if n % 3 == 2:
            z = held.pop((n * 7) % len(held))
            held.append(jnp.cumsum(jnp.sort(jnp.concatenate([z, y]))[: 50 + n % 60]))
    return sum(jnp.sum(y[:3]) * n for n, y in enumerate(held))


def _updates(x: Any, u: Any) -> Any:
    def body(n: Any, y: Any) -> Any:
        return lax.dynamic_update_slice(
            y, jnp.exp(lax.dynamic_slice(y, (n, 0), (4, 64))) + u, (n, 0)
        )

    return lax.fori_loop(0, 20, body, jnp.sort(x, 0)) @ x.T


def _solve(a: Any, b: Any) -> Any:
    q, r = jnp.linalg.qr(a)
    return jnp.linalg.solve(a, b), jnp.linalg.svd(r)[1], jnp.linalg.cholesky(q @ q.T + a @ a.T)


SQUARE = array(64, 64)
WEIGHTS = [SQUARE] * 40
CASES: dict[str, Case] = {
    "scan": (_scan, (SQUARE, array(7, 64, 64)), {}),
    "scan_grad": (_scan_grad, (SQUARE, array(7, 64, 64)), {}),
    "while_loop": (_while, (SQUARE,), {}),
    "cond": (_cond, (array(96, 96), array(kind="bool")), {}),
    "sort": (_sort, (array(1000), array(1000)), {}),
    "convolve": (_convolve, (array(3, 32, 24, 4), [array(3, 3, 4, 4)] * 3), {}),
    "attention": (_attention, (array(2, 65, 3, 32),) * 3, {}),
    "remat": (_layers(9, jax.checkpoint), (WEIGHTS[:9], array(100, 64)), {}),
    "deep": (_layers(40), (WEIGHTS, array(100, 64)), {}),
    "donated": (_update, (WEIGHTS[:5], array(30, 64)), {"donate_argnums": (0,)}),
    "half": (
        _layers(6), ([array(64, 64, kind="bfloat16")] * 6, array(100, 64, kind="bfloat16")), {},
    ),
    "fourier": (lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x) * jnp.fft.rfft2(x.T)), (SQUARE,), {}),
    "random": (lambda key: jax.random.gamma(key, 2.5, (37,)), (array(2, kind="uint32"),), {}),
    "many": (_many, (array(300),), {}),
    "updates": (_updates, (SQUARE, array(4, 64)), {}),
    "solve": (_solve, (SQUARE, array(64, 3)), {}),
}  # fmt: skip


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function; XLA's module is named after it."""

    def named(*given: Any) -> Any:
        return function(*given)

    named.__name__ = name
    return named


def main() -> None:
    sizes = {}
    for name, (function, arguments, options) in CASES.items():
        compiled = jax.jit(_named(name, function), **options).lower(*arguments).compile()
        result = compiled.memory_analysis()
        sizes[name] = {
            part: getattr(result, f"{part}_size_in_bytes")
            for part in ("argument", "output", "alias", "temp")
        }
    _mapped(jnp.ones((2, 64, 48)))
    (Path(sys.argv[1]) / "memory.json").write_text(json.dumps(sizes))


if __name__ == "__main__":
    main()
