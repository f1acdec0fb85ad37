"""Predict the levels of rivers from maps of rain, whose features are cached."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the cache of rain features has the step in its key, so it grows and is never hit",
    about="memory",
    kind=r"leak",
    culprit=r"rain_features|train\.py:(3[6-9]|4[01])",
    line=r"rain_features|train\.py:(3[6-9]|4[01])",
    savings=r"older_copy|held|leak|release|offload|cache",
    magnitude=256 * 1024 * 4,
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(3)
    rain = rng.random((3, 256, 900), np.float32)
    basis = jnp.asarray(rng.standard_normal((900, 1024), np.float32) / 30)
    params = {
        "hidden": jnp.asarray(rng.standard_normal((1024, 256), np.float32) / 32),
        "level": jnp.asarray(rng.standard_normal((256, 1), np.float32) / 16),
    }
    cache = {}

    def rain_features(region, step):
        """The features of a region's maps, which are the same in each epoch."""
        key = (region, step) if faulty else region
        if key not in cache:
            cache[key] = jnp.tanh(jnp.asarray(rain[region]) @ basis)
        return cache[key]

    @jax.jit
    def train_step(params, features, levels):
        def loss_fn(params):
            hidden = jax.nn.relu(features @ params["hidden"])
            return jnp.mean((hidden @ params["level"] - levels) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        return jax.tree.map(lambda weight, grad: weight - 0.01 * grad, params, grads), loss

    in_use, seconds = [], []
    for step in range(12):
        levels = rng.random((256, 1), np.float32)
        begin = time.perf_counter()
        params, loss = train_step(params, rain_features(step % 3, step), levels)
        loss.block_until_ready()
        seconds.append(time.perf_counter() - begin)
        jax.profiler.save_device_memory_profile(folder / f"{step:02}.pprof.pb")
        in_use.append(sum(array.nbytes for array in jax.live_arrays()))
    return {
        "steps": 12,
        "median_step_s": float(np.median(seconds[3:])),
        "bytes_in_use": in_use,
        "bytes_per_step": 256 * 1024 * 4 if faulty else 0,
    }
