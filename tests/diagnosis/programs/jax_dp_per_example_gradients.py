"""Train a tabular classifier with differential privacy: gradients clipped example by example."""

from __future__ import annotations

import functools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="vmap of grad over the whole batch makes all examples' gradients at once",
    about="memory",
    kind=r"huge_temporary|accumulated_in_step",
    culprit=r"vmap|clipped|private|512,\s*\d+",
    line=r"private_gradients|sum_of_clipped|train\.py:4[1-7]|clipped",
    savings=r"temporary|batch|pieces|recompute|fuse",
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Two profiled steps, and the compiler's count of what a step needs."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.flatten_util import ravel_pytree

    def init(key):
        keys = jax.random.split(key, 3)
        sizes = ((96, 128), (128, 96), (96, 4))
        return [
            {"w": jax.random.normal(k, size) / size[0] ** 0.5, "b": jnp.zeros(size[1])}
            for k, size in zip(keys, sizes, strict=True)
        ]

    def nll(params, x, y):
        for layer in params[:-1]:
            x = jax.nn.elu(x @ layer["w"] + layer["b"])
        return -jax.nn.log_softmax(x @ params[-1]["w"] + params[-1]["b"])[y]

    def clipped(grads, bound=1.0):
        norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(grads)))
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, bound / norm), grads)

    def sum_of_clipped(params, x, y):
        grads = jax.vmap(jax.grad(nll), (None, 0, 0))(params, x, y)
        grads = jax.vmap(clipped)(grads)
        return jax.tree.map(lambda leaf: leaf.sum(axis=0), grads)

    def private_gradients(params, x, y, key, pieces=8):
        if faulty:
            total = sum_of_clipped(params, x, y)
        else:
            x, y = x.reshape(pieces, -1, 96), y.reshape(pieces, -1)

            def add(total, piece):
                return jax.tree.map(jnp.add, total, sum_of_clipped(params, *piece)), None

            total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), (x, y))
        flat, unravel = ravel_pytree(total)
        return unravel(flat + 0.8 * jax.random.normal(key, flat.shape))

    @functools.partial(jax.jit, donate_argnums=0)
    def dp_sgd_step(params, x, y, key):
        grads = private_gradients(params, x, y, key)
        return jax.tree.map(lambda p, g: p - 0.1 * g / x.shape[0], params, grads)

    params, key = init(jax.random.key(0)), jax.random.key(9)
    random = np.random.default_rng(0)
    x = random.standard_normal((512, 96)).astype(np.float32)
    y = random.integers(0, 4, 512).astype(np.int32)
    needs = dp_sgd_step.lower(params, x, y, key).compile().memory_analysis()
    seconds = []
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    for step in range(10):
        if step == 8:
            jax.profiler.start_trace(folder, profiler_options=options)
        began = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("dp_step", step_num=step):
            params = dp_sgd_step(params, x, y, jax.random.fold_in(key, step))
            jax.block_until_ready(params)
        seconds.append(time.perf_counter() - began)
    jax.profiler.stop_trace()
    traced = next(folder.rglob("*.xplane.pb"))
    next(folder.rglob("*.json.gz")).unlink()
    traced.rename(folder / "worker0.xplane.pb")
    weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    return {
        "median_step_seconds": float(np.median(seconds[2:8])),
        "steps": 2,
        "temporary_bytes": needs.temp_size_in_bytes,
        "bytes_of_all_gradients": 512 * weights * 4 if faulty else 64 * weights * 4,
    }
