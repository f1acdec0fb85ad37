"""Record programs that JAX compiles, on four devices of the CPU. Runs in the peers' environment.

    python placed_jax.py FILE

FILE becomes the XSpace of a profile in which each of them ran once.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _donated() -> Any:
    step = jax.jit(lambda w, x: (w - 0.1 * (x.T @ (x @ w)), x), donate_argnums=(0,))
    return step(jnp.ones((96, 128)), jnp.ones((256, 96)))


def _scanned() -> Any:
    weights = jnp.ones((5, 64, 64))

    def loss(w: Any) -> Any:
        turn = jax.checkpoint(lambda h, v: (jnp.tanh(h @ v), h.sum()))
        out, sums = lax.scan(turn, jnp.ones((32, 64)), w)
        return out.sum() + sums.sum()

    return jax.jit(jax.value_and_grad(loss))(weights)


def _while() -> Any:
    def grow(x: Any) -> Any:
        return lax.while_loop(
            lambda s: s[0].sum() < 1e6, lambda s: (s[0] * 2 + s[1], s[1] @ s[1] * 0.5), (x, x)
        )

    return jax.jit(grow)(jnp.ones((90, 90)))


def _branches() -> Any:
    def choose(at: Any, x: Any) -> Any:
        ways = (lambda y: jnp.sort(y, 0), lambda y: y @ y.T @ y, jnp.exp)
        return lax.cond(x[0, 0] > 0, lambda y: lax.switch(at, ways, y), lambda y: y * 2, x)

    return jax.jit(choose)(jnp.int32(1), jnp.ones((100, 100)))


def _on_all() -> Any:
    count = len(jax.devices())
    mean = jax.pmap(lambda x: lax.pmean(x @ x, "i") + lax.all_gather(x, "i").sum(0), axis_name="i")
    return mean(jnp.ones((count, 80, 80)))


def _nested() -> Any:
    def build(tree: Any) -> Any:
        return {"a": (tree["a"][0] + 1, {"b": tree["a"][0] @ tree["a"][0]}), "c": [tree["c"]] * 2}

    return jax.jit(build)({"a": (jnp.ones((70, 70)),), "c": jnp.arange(9000)})


def _nested_loop() -> Any:
    def turn(_: Any, state: Any) -> Any:
        (a, (b, c)), d = state
        a, c = lax.fori_loop(0, 3, lambda _, y: (y[0] @ b, y[1] + 1), (a, c))
        return (a, (b, c)), d + 1

    start = ((jnp.ones((64, 64)), (jnp.ones((64, 64)), jnp.ones(5))), 0)
    return jax.jit(lambda s: lax.fori_loop(0, 4, turn, s))(start)


def _constant() -> Any:
    big = np.arange(300 * 300, dtype=np.float32).reshape(300, 300)
    return jax.jit(lambda x: x @ big + big.T[:1])(jnp.ones((20, 300)))


def _narrow() -> Any:
    def mixed(x: Any) -> Any:
        half = x.astype(jnp.bfloat16)
        return (half @ half.T).astype(jnp.float32), half.astype(jnp.float8_e4m3fn), half > 1

    return jax.jit(mixed)(jnp.ones((130, 77)))


def _complex() -> Any:
    return jax.jit(lambda x: jnp.fft.ifft2(jnp.fft.fft2(x) * 2).real)(jnp.ones((64, 96)))


def _convolved() -> Any:
    def convolve(x: Any, k: Any) -> Any:
        out = lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return lax.reduce_window(out, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    return jax.jit(jax.grad(lambda x, k: convolve(x, k).sum(), argnums=(0, 1)))(
        jnp.ones((2, 24, 24, 8)), jnp.ones((3, 3, 8, 16))
    )


def _sorted() -> Any:
    pairs = jax.jit(lambda x, i: lax.sort((x, i), num_keys=1))
    return pairs(jnp.ones(20_000), jnp.arange(20_000))


def _called() -> Any:
    return jax.jit(lambda x: jnp.linalg.qr(x)[1] + jnp.linalg.cholesky(x @ x.T))(jnp.eye(80))


def _back() -> Any:
    double = partial(jax.pure_callback, lambda x: np.asarray(x) * 2, jnp.ones((50, 50)))
    return jax.jit(lambda x: double(x @ x) + 1)(jnp.ones((50, 50)))


def _random() -> Any:
    return jax.jit(lambda key: jax.random.permutation(key, 5000))(jax.random.key(1))


def _scattered() -> Any:
    return jax.jit(lambda x, i: x.at[i].add(1.0)[i[::-1]])(
        jnp.ones((500, 40)), jnp.arange(0, 90, 3)
    )


def _many() -> Any:
    def chain(*xs: Any) -> Any:
        return [jnp.tanh(a @ b) for a, b in pairwise(xs)]

    return jax.jit(chain)(*(jnp.ones((64, 64)) for _ in range(40)))


def _empty() -> Any:
    return jax.jit(lambda x: x)(jnp.ones((0, 4))), jax.jit(lambda: ())()


PROGRAMS: tuple[Callable[[], Any], ...] = (
    _donated, _scanned, _while, _branches, _on_all, _nested, _nested_loop, _constant, _narrow,
    _complex, _convolved, _sorted, _called, _back, _random, _scattered, _many, _empty,
)  # fmt: skip


def main(target: str) -> None:
    """Run them all under the profiler."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for program in PROGRAMS:
                jax.block_until_ready(program())
        (result,) = Path(folder).rglob("*.xplane.pb")
        shutil.copy(result, target)


if __name__ == "__main__":
    main(sys.argv[1])
