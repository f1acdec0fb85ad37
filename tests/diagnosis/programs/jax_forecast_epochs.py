"""Forecast the sales of shops with a temporal convolutional network in JAX, epoch by epoch."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="jax.clear_caches() at each epoch's end, against a leak, so each epoch compiles again",
    about="time",
    kind=r"recompil|retrac|compil|step_variation",
    culprit=r"fit_window|clear_caches|end_epoch|run_epoch",
    line=r"",
    round=3,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Epochs of six batches; three of them are profiled."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    def init_tcn(key, channels=(1, 32, 32)):
        keys = jax.random.split(key, len(channels))
        layers = [
            jax.random.normal(k, (3, a, b)) * (3 * a) ** -0.5
            for k, a, b in zip(keys[1:], channels[:-1], channels[1:], strict=True)
        ]
        return {"layers": layers, "out": jax.random.normal(keys[0], (channels[-1], 7)) * 0.1}

    def tcn(params, sales):
        x = sales[:, :, None]
        for number, kernel in enumerate(params["layers"]):
            dilation = 2**number
            x = jax.lax.conv_general_dilated(
                x, kernel, (1,), [(2 * dilation, 0)], rhs_dilation=(dilation,),
                dimension_numbers=("NWC", "WIO", "NWC"),
            )  # fmt: skip
            x = jax.nn.relu(x)
        return x[:, -1] @ params["out"]

    @jax.jit
    def fit_window(params, sales, following):
        def mean_absolute(params):
            return jnp.abs(tcn(params, sales) - following).mean()

        loss, grads = jax.value_and_grad(mean_absolute)(params)
        return jax.tree.map(lambda p, g: p - 0.01 * jnp.sign(g), params, grads), loss

    def end_epoch(history, losses):
        history.append(float(jnp.stack(losses).mean()))
        if faulty:
            jax.clear_caches()

    params = init_tcn(jax.random.key(30))
    random = np.random.default_rng(30)
    sales = random.gamma(2.0, 1.0, (400, 280)).astype(np.float32)
    history, seconds = [], []

    def run_epoch(params, epoch, batches=6):
        losses = []
        for number in range(batches):
            begin = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=batches * epoch + number):
                shops, day = random.integers(0, 400, 64), random.integers(0, 100)
                window = sales[shops, day : day + 168]
                following = sales[shops, day + 168 : day + 175]
                params, loss = fit_window(params, window, following)
                losses.append(loss.block_until_ready())
                if number == batches - 1:
                    end_epoch(history, losses)
            seconds.append(time.perf_counter() - begin)
        return params

    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    for epoch in range(7):
        if epoch == 4:
            jax.profiler.start_trace(folder / "log", profiler_options=options)
        params = run_epoch(params, epoch)
    jax.profiler.stop_trace()
    shutil.move(next((folder / "log").rglob("*.xplane.pb")), folder / "worker0.xplane.pb")
    shutil.rmtree(folder / "log")
    return {
        "median_step_seconds": float(np.median(seconds[6:24])),
        "mean_step_seconds": float(np.mean(seconds[6:24])),
        "steps": 18,
        "last_loss": history[-1],
    }
