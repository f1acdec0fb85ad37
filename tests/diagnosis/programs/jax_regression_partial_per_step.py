"""Fit a tabular regression network with pure JAX functions, the learning rate warming up."""

from __future__ import annotations

import functools
import itertools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="jax.jit of a new functools.partial in each step, so that each step compiles again",
    about="time",
    kind=r"recompil|retrac|compil",
    culprit=r"sgd_update",
    line=r"",
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Fit, with a clock around each step, and profile four steps."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    def init_layers(key, sizes):
        layers = []
        for fan_in, fan_out in itertools.pairwise(sizes):
            key, sub = jax.random.split(key)
            weight = jax.random.normal(sub, (fan_in, fan_out)) * (2 / fan_in) ** 0.5
            layers.append((weight, jnp.zeros(fan_out)))
        return layers

    def predict(layers, x):
        for weight, bias in layers[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        weight, bias = layers[-1]
        return (x @ weight + bias)[:, 0]

    def mse(layers, x, y):
        return jnp.mean((predict(layers, x) - y) ** 2)

    def sgd_update(layers, x, y, lr, decay):
        grads = jax.grad(mse)(layers, x, y)
        return jax.tree.map(lambda p, g: p - lr * (g + decay * p), layers, grads)

    jitted = jax.jit(functools.partial(sgd_update, decay=1e-4), donate_argnums=0)
    random = np.random.default_rng(3)
    table = random.standard_normal((20_000, 64)).astype(np.float32)
    target = table[:, :8].sum(axis=1)

    def fit(layers, first, last):
        seconds = []
        for step in range(first, last):
            began = time.perf_counter()
            rows = random.integers(0, len(table), 2048)
            rate = 1e-3 * min(1.0, (step + 1) / 40)
            with jax.profiler.StepTraceAnnotation("step", step_num=step):
                if faulty:
                    step_fn = functools.partial(sgd_update, lr=rate, decay=1e-4)
                    update = jax.jit(step_fn, donate_argnums=0)
                    layers = update(layers, table[rows], target[rows])
                else:
                    layers = jitted(layers, table[rows], target[rows], rate)
                jax.block_until_ready(layers)
            seconds.append(time.perf_counter() - began)
        return layers, seconds

    layers, _ = fit(init_layers(jax.random.key(3), (64, 256, 128, 1)), 0, 3)
    layers, seconds = fit(layers, 3, 20)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(folder / "tb", profiler_options=options):
        fit(layers, 20, 24)
    for path in list((folder / "tb").rglob("*")):
        if path.name.endswith(".xplane.pb"):
            path.rename(folder / "worker0.xplane.pb")
        elif path.is_file():
            path.unlink()
    return {
        "median_step_seconds": float(np.median(seconds)),
        "steps": 4,
        "compilations": 4 * faulty,
    }
