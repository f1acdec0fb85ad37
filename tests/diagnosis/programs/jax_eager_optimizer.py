"""Train a variational autoencoder with a hand-written Adam, step by step."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="Adam's update runs outside jit: a tree_map of many small ops dispatched one by one",
    about="time",
    kind=r"tiny_ops|launch_bound|host_bound|unfused_elementwise|python_work",
    culprit=r"adam_update|tree_map|multiply|update_weight|sqrt|true_divide",
    line=r"adam_update|update_weight|train\.py:2[4-9]",
)


def adam_update(weights, slopes, first, second, count, rate=1e-3):
    """New weights and moments."""
    import jax
    import jax.numpy as jnp

    def update_weight(weight, slope, m, v):
        m = 0.9 * m + 0.1 * slope
        v = 0.999 * v + 0.001 * slope * slope
        ahead = m / (1 - 0.9**count)
        scale = v / (1 - 0.999**count)
        return weight - rate * ahead / (jnp.sqrt(scale) + 1e-8), m, v

    updated = jax.tree.map(update_weight, weights, slopes, first, second)
    return jax.tree.transpose(jax.tree.structure(weights), None, updated)


def record(folder: Path, *, faulty: bool) -> dict:
    """Train on random pictures; the last three steps are profiled."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    sizes = {
        "encode": (196, 128),
        "mean": (128, 12),
        "spread": (128, 12),
        "decode": (12, 128),
        "pixels": (128, 196),
    }

    def elbo(weights, pictures, key):
        def layer(name, x):
            return x @ weights[name]["kernel"] + weights[name]["bias"]

        hidden = jax.nn.relu(layer("encode", pictures))
        mean, spread = layer("mean", hidden), layer("spread", hidden)
        code = mean + jnp.exp(spread) * jax.random.normal(key, mean.shape)
        pixels = layer("pixels", jax.nn.relu(layer("decode", code)))
        fit = jnp.sum((pixels - pictures) ** 2, axis=-1)
        prior = jnp.sum(jnp.exp(2 * spread) + mean**2 - 1 - 2 * spread, axis=-1)
        return jnp.mean(fit + 0.5 * prior)

    random = np.random.default_rng(0)
    weights = {
        name: {
            "kernel": jnp.asarray(random.normal(0, size[0] ** -0.5, size), jnp.float32),
            "bias": jnp.zeros(size[1]),
        }
        for name, size in sizes.items()
    }
    first = jax.tree.map(jnp.zeros_like, weights)
    second = jax.tree.map(jnp.zeros_like, weights)
    slopes_of = jax.jit(jax.grad(elbo))
    update = adam_update if faulty else jax.jit(adam_update, donate_argnums=(0, 2, 3))
    key = jax.random.key(1)
    seconds = []
    for step in range(1, 24):
        if step == 21:
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            jax.profiler.start_trace(str(folder), profiler_options=options)
        pictures = random.random((256, 196), np.float32)
        began = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train_step", step_num=step):
            slopes = slopes_of(weights, pictures, jax.random.fold_in(key, step))
            weights, first, second = update(weights, slopes, first, second, step)
            jax.block_until_ready(weights)
        seconds.append(time.perf_counter() - began)
    jax.profiler.stop_trace()
    next(folder.rglob("*.json.gz")).unlink()
    next(folder.rglob("*.pb")).rename(folder / "worker0.xplane.pb")
    return {
        "median_step_seconds": float(np.median(seconds[2:20])),
        "steps": 3,
        "arrays_updated": len(jax.tree.leaves(weights)),
    }
