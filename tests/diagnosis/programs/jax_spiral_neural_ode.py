"""Fit a neural differential equation to spirals, with a midpoint solver, in JAX."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the solver's scan saves the hidden layers of both stages of all its steps",
    about="memory",
    kind=r"huge_temporary|accumulated_in_step|one_pass|scan_residuals",
    culprit=r"odeint|midpoint_step|vector_field|while|scan|12,\s*512,\s*128",
    line=r"odeint|midpoint_step|vector_field|train\.py:(3[6-9]|4\d|5[0-4])",
    savings=r"recompute|temporary|batch|pieces|precision",
    is_held_out=True,
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Seven steps, the last two of them under the profiler."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    def init_field(key, state=8, hidden=128):
        keys = jax.random.split(key, 3)
        sizes = ((state, hidden), (hidden, hidden), (hidden, state))
        return [
            (jax.random.normal(k, size) / size[0] ** 0.5, jnp.zeros(size[1]))
            for k, size in zip(keys, sizes, strict=True)
        ]

    def vector_field(params, y):
        for w, b in params[:-1]:
            y = jnp.tanh(y @ w + b)
        w, b = params[-1]
        return y @ w + b

    def midpoint_step(params, y, dt=1 / 12):
        middle = y + dt / 2 * vector_field(params, y)
        return y + dt * vector_field(params, middle)

    def odeint(params, y0, steps=12):
        advance = midpoint_step if faulty else jax.checkpoint(midpoint_step)

        def body(y, _):
            return advance(params, y), None

        return jax.lax.scan(body, y0, length=steps)[0]

    tx = optax.adabelief(1e-3)

    def fit_spirals(params, moments, start, end):
        def distance(params):
            return jnp.mean((odeint(params, start) - end) ** 2)

        loss, grads = jax.value_and_grad(distance)(params)
        updates, moments = tx.update(grads, moments)
        return optax.apply_updates(params, updates), moments, loss

    params = init_field(jax.random.key(0))
    moments = tx.init(params)
    random = np.random.default_rng(0)
    start, end = random.standard_normal((2, 512, 8), np.float32)
    compiled = jax.jit(fit_spirals, donate_argnums=(0, 1))
    needs = compiled.lower(params, moments, start, end).compile().memory_analysis()
    seconds = []
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    for number in range(7):
        if number == 5:
            jax.profiler.start_trace(folder / "log", profiler_options=options)
        began = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("fit", step_num=number):
            params, moments, loss = compiled(params, moments, start, end)
            loss.block_until_ready()
        seconds.append(time.perf_counter() - began)
    jax.profiler.stop_trace()
    next((folder / "log").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "log").rglob("*.json.gz")).unlink()
    return {
        "median_step_seconds": float(np.median(seconds[1:5])),
        "steps": 2,
        "temporary_bytes": needs.temp_size_in_bytes,
        "loss": float(loss),
    }
