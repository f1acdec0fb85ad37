"""Predict the yield of orchards, with statistics of the weights for the log."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="percentiles of all weights are taken by NumPy after each step, while the device waits",
    about="time",
    kind=r"python_work|host_bound|host_sync|idle_between_steps",
    culprit=r"weight_statistics|percentile|quantile|partition",
    line=r"weight_statistics|percentile|quantile|train\.py:2[1-5]",
    round=6,
)


def weight_statistics(params):
    """Three percentiles of each array."""
    import numpy as np

    return [np.percentile(np.abs(np.asarray(w)), [5, 50, 95]) for layer in params for w in layer]


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(2)
    params = [
        (rng.standard_normal((a, b), np.float32) / a**0.5, np.zeros(b, np.float32))
        for a, b in itertools.pairwise([80, 768, 768, 1])
    ]
    params = jax.device_put(params)

    def loss_fn(params, x, y):
        for w, b in params[:-1]:
            x = jax.nn.gelu(x @ w + b)
        w, b = params[-1]
        return jnp.mean((x @ w + b - y) ** 2)

    @jax.jit
    def train_step(params, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        return jax.tree.map(lambda weight, grad: weight - 0.01 * grad, params, grads), loss

    log, seconds = [], []
    log_every = 1 if faulty else 200

    def train(steps):
        nonlocal params
        for step in range(1, steps + 1):
            x = rng.standard_normal((512, 80), np.float32)
            y = rng.standard_normal((512, 1), np.float32)
            begin = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                params, loss = train_step(params, x, y)
                loss.block_until_ready()
                if step % log_every == 0:
                    log.append(weight_statistics(params))
            seconds.append(time.perf_counter() - begin)

    train(15)
    jax.profiler.start_trace(folder / "logs")
    train(6)
    jax.profiler.stop_trace()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    return {"steps": 6, "median_step_s": float(np.median(seconds[4:15]))}
