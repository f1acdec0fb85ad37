"""Train a survival model on hospital-like tables with jax_enable_x64 set for its time axis."""

from __future__ import annotations

import functools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="with jax_enable_x64 on, float64 tables make the whole network compute in float64",
    about="time",
    kind=r"float64_memory",
    culprit=r"f64|float64|double",
    line=r"",
    savings=r"precision",
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Fit the Cox loss, and profile five steps with Python's own calls left out."""
    import jax

    jax.config.update("jax_enable_x64", True)  # noqa: FBT003

    import jax.numpy as jnp
    import numpy as np

    dtype = np.float64 if faulty else np.float32

    def make_table(patients=1024, columns=200):
        random = np.random.default_rng(6)
        table = random.normal(size=(patients, columns))
        days = np.sort(random.exponential(400.0, size=patients))[::-1]
        return table.astype(dtype), days.copy(), (random.random(patients) < 0.7)

    def glorot(random, rows, columns):
        return jnp.asarray(random.normal(size=(rows, columns)) / np.sqrt(rows), dtype)

    class CoxNetwork:
        def __init__(self, columns, hidden=(384, 384)):
            random = np.random.default_rng(0)
            sizes = [columns, *hidden, 1]
            self.weights = [glorot(random, *sizes[i : i + 2]) for i in range(len(sizes) - 1)]

        @staticmethod
        def risk(weights, table):
            x = table
            for weight in weights[:-1]:
                x = jnp.tanh(x @ weight)
            return (x @ weights[-1])[:, 0]

        @classmethod
        def partial_likelihood(cls, weights, table, events):
            risk = cls.risk(weights, table)
            at_risk = jnp.log(jnp.cumsum(jnp.exp(risk)))
            return -jnp.sum((risk - at_risk) * events) / events.sum()

    @functools.partial(jax.jit, donate_argnums=0)
    def descend(weights, table, events):
        value, slopes = jax.value_and_grad(CoxNetwork.partial_likelihood)(weights, table, events)
        return [w - (0.01 * s).astype(w.dtype) for w, s in zip(weights, slopes, strict=True)], value

    table, _, observed = make_table()
    network = CoxNetwork(table.shape[1])
    table, events = jax.device_put(table), jax.device_put(observed.astype(dtype))

    def run_epoch(first, steps):
        lasted = []
        for number in range(first, first + steps):
            start = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("epoch_step", step_num=number):
                network.weights, value = descend(network.weights, table, events)
                value.block_until_ready()
            lasted.append(time.perf_counter() - start)
        return lasted

    run_epoch(0, 3)
    lasted = run_epoch(3, 15)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(folder / "out", profiler_options=options):
        run_epoch(18, 5)
    (result,) = (folder / "out").rglob("*.xplane.pb")
    result.replace(folder / "worker0.xplane.pb")
    (rest,) = (folder / "out").rglob("*.json.gz")
    rest.unlink()
    return {
        "median_step_seconds": float(np.median(lasted)),
        "steps": 5,
        "weight_dtype": str(network.weights[0].dtype),
    }
