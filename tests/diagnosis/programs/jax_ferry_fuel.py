"""Predict the fuel of ferries, with a penalty of how curved the loss is at the output layer."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

TRIPS, INPUTS, WIDTH, LAST = 96, 512, 768, 2048

PAIR = Pair(
    fault="each step makes the whole Hessian of the output layer, for the sum of its diagonal",
    about="memory",
    kind=r"huge_temporary|peak_in_one_step",
    culprit=r"hessian|2048,\s*2048|2048,\s*96|96,\s*2048,\s*2048|train\.py:2[3-5]\b",
    line=r"hessian|train\.py:(2[3-5]|5[0-4])",
    savings=r"temporary|batch|pieces|precision|recompute|program|fuse",
    round=7,
)


def curvature_by_hessian(jax, loss_of, weights):
    """The trace of the second derivatives."""
    return jax.numpy.trace(jax.hessian(loss_of)(weights))


def curvature_by_probe(jax, loss_of, weights, key):
    """An estimate of the trace from one random direction."""
    probe = jax.random.rademacher(key, weights.shape, weights.dtype)
    return probe @ jax.jvp(jax.grad(loss_of), (weights,), (probe,))[1]


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(7)

    def normal(*shape):
        return jnp.asarray(rng.standard_normal(shape, np.float32) / shape[0] ** 0.5)

    params = {"first": normal(INPUTS, WIDTH), "second": normal(WIDTH, LAST), "out": normal(LAST)}

    def loss_fn(params, x, fuel, key):
        hidden = jnp.tanh(jnp.tanh(x @ params["first"]) @ params["second"])

        def loss_of(weights):
            return jnp.mean(jnp.log(jnp.cosh(hidden @ weights - fuel)))

        if faulty:
            curvature = curvature_by_hessian(jax, loss_of, params["out"])
        else:
            curvature = curvature_by_probe(jax, loss_of, params["out"], key)
        return loss_of(params["out"]) + 0.001 * curvature

    def train_step(params, x, fuel, key):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, fuel, key)
        return jax.tree.map(lambda weight, grad: weight - 0.01 * grad, params, grads), loss

    train_step = jax.jit(train_step, donate_argnums=0)
    trips = rng.random((4, TRIPS, INPUTS), np.float32)
    fuel = rng.random((4, TRIPS), np.float32)
    keys = jax.random.split(jax.random.key(0), 4)
    needs = train_step.lower(params, trips[0], fuel[0], keys[0]).compile().memory_analysis()
    seconds = []

    def train(steps):
        nonlocal params
        for step in range(steps):
            begin = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                turn = step % 4
                params, loss = train_step(params, trips[turn], fuel[turn], keys[turn])
                loss.block_until_ready()
            seconds.append(time.perf_counter() - begin)

    train(12)
    jax.profiler.start_trace(folder / "logs")
    train(6)
    jax.profiler.stop_trace()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    return {
        "steps": 6,
        "median_step_s": float(np.median(seconds[3:12])),
        "temporary_bytes": needs.temp_size_in_bytes,
        "argument_bytes": needs.argument_size_in_bytes,
    }
