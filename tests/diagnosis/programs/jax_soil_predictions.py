"""Predict properties of soil from spectra, and save the memory in use after each batch."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="a list holds the predictions of every batch on the device, for a score at the end",
    about="memory",
    kind=r"leak",
    culprit=r"fit_batch|train\.py:5[0-4]",
    line=r"fit_batch|train\.py:5[0-4]",
    savings=r"older_copy|held|leak|release|offload",
    magnitude=512 * 600 * 4,
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(1)
    params = {
        "hidden": jnp.asarray(rng.standard_normal((700, 256), np.float32) / 26),
        "output": jnp.asarray(rng.standard_normal((256, 600), np.float32) / 16),
    }

    def loss_fn(params, spectra, targets):
        hidden = jnp.tanh(spectra @ params["hidden"])
        predicted = hidden @ params["output"]
        return jnp.mean((predicted - targets) ** 2), predicted

    @jax.jit
    def train_step(params, spectra, targets):
        grads, predicted = jax.grad(loss_fn, has_aux=True)(params, spectra, targets)
        params = jax.tree.map(lambda weight, grad: weight - 0.01 * grad, params, grads)
        return params, predicted

    def load_batch():
        spectra = rng.random((512, 700), np.float32)
        return spectra, rng.random((512, 600), np.float32)

    predictions = []

    def fit_batch(params):
        spectra, targets = load_batch()
        params, predicted = train_step(params, spectra, targets)
        if faulty:
            predictions.append(predicted)
        else:
            predictions.append(np.array(predicted))
        return jax.block_until_ready(params)

    in_use, seconds = [], []
    for step in range(8):
        begin = time.perf_counter()
        params = fit_batch(params)
        seconds.append(time.perf_counter() - begin)
        jax.profiler.save_device_memory_profile(folder / f"{step:02}.pprof.pb")
        in_use.append(sum(array.nbytes for array in jax.live_arrays()))
    return {
        "steps": 8,
        "median_step_s": float(np.median(seconds[1:])),
        "bytes_in_use": in_use,
        "bytes_per_step": 512 * 600 * 4 if faulty else 0,
    }
