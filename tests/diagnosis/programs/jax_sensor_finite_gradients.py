"""Train a residual autoencoder of sensor windows, as a script with a main loop."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="all arrays are checked for NaN in Python: all() takes the bool() of each",
    about="time",
    kind=r"host_sync|host_bound|tiny_ops|launch_bound|idle_between_steps",
    culprit=r"__bool__|all_finite|isfinite|_value\b|train\.py:2[1-9]",
    line=r"__bool__|all_finite|isfinite|_value\b|train\.py:2[1-9]",
    is_held_out=True,
    round=2,
)


def all_finite(tree):
    """Whether no array has a NaN or an infinity."""
    import jax
    import jax.numpy as jnp

    return all(jnp.isfinite(array).all() for array in jax.tree.leaves(tree))


def record(folder: Path, *, faulty: bool) -> dict:
    """Warm up, take the time of thirty steps, and profile four."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    random = np.random.default_rng(3)
    signal = random.standard_normal((50_000, 4)).astype(np.float32).cumsum(axis=0)

    def windows(count=64, length=32):
        starts = random.integers(0, len(signal) - length, count)
        taken = signal[starts[:, None] + np.arange(length)].reshape(count, -1)
        return (taken - taken.mean(axis=1, keepdims=True)) / taken.std(axis=1, keepdims=True)

    def reconstruct(weights, x):
        for block in weights:
            hidden = jax.nn.gelu(x @ block["in"] + block["bias"])
            x = x + hidden @ block["out"]
        return x

    def mse(weights, clean, noise):
        return jnp.mean((reconstruct(weights, clean + noise) - clean) ** 2)

    def initialise(key, blocks=4, width=128, hidden=96):
        keys = jax.random.split(key, (blocks, 2))
        return [
            {
                "in": jax.random.normal(first, (width, hidden)) / 11,
                "bias": jnp.zeros(hidden),
                "out": jax.random.normal(second, (hidden, width)) / 32,
            }
            for first, second in keys
        ]

    adam = optax.adam(1e-3)
    tx = adam if faulty else optax.apply_if_finite(adam, max_consecutive_errors=5)
    slopes_of = jax.value_and_grad(mse)

    @jax.jit
    def apply_updates(weights, moments, slopes):
        updates, moments = tx.update(slopes, moments)
        return optax.apply_updates(weights, updates), moments

    @jax.jit
    def fit_windows(weights, moments, clean, noise):
        loss, slopes = slopes_of(weights, clean, noise)
        return *apply_updates(weights, moments, slopes), loss

    gradients = jax.jit(slopes_of)

    def train_step(weights, moments, clean):
        noise = 0.1 * random.standard_normal(clean.shape).astype(np.float32)
        if not faulty:
            return fit_windows(weights, moments, clean, noise)
        loss, slopes = gradients(weights, clean, noise)
        if all_finite(slopes) and all_finite(weights):
            weights, moments = apply_updates(weights, moments, slopes)
        return weights, moments, loss

    weights = initialise(jax.random.key(0))
    moments = tx.init(weights)

    def main_loop(weights, moments, steps):
        took = []
        for step in range(steps):
            began = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                weights, moments, loss = train_step(weights, moments, windows())
                loss.block_until_ready()
            took.append(time.perf_counter() - began)
        return weights, moments, took

    weights, moments, _ = main_loop(weights, moments, 4)
    weights, moments, took = main_loop(weights, moments, 30)
    with jax.profiler.trace(folder / "run"):
        main_loop(weights, moments, 5)
    for path in sorted((folder / "run").rglob("*.*")):
        if path.name.endswith(".xplane.pb"):
            path.replace(folder / "worker0.xplane.pb")
        elif path.is_file():
            path.unlink()
    return {
        "median_step_seconds": float(np.median(took)),
        "steps": 4,
        "arrays": len(jax.tree.leaves(weights)),
    }
