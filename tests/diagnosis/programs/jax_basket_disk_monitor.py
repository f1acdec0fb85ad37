"""Train a model of shopping baskets that pools their products by attention, in Flax linen."""

from __future__ import annotations

import functools
import subprocess
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="a monitor starts a process in every step, to ask for the free disk space",
    about="time",
    kind=r"python_work|host_bound|idle_between_steps",
    culprit=r"subprocess|DiskMonitor|after_batch|free_kilobytes|check_output",
    line=r"subprocess|after_batch|free_kilobytes|check_output|train\.py:(29|3\d)",
    is_held_out=True,
    round=2,
)


class DiskMonitor:
    """Remembers how much space the disk of the logs has."""

    def __init__(self, every):
        self.every, self.free = every, []

    def free_kilobytes(self):
        """Of the working folder's disk."""
        lines = subprocess.check_output(["df", "-k", "."], text=True).splitlines()
        return int(lines[1].split()[3])

    def after_batch(self, number):
        """Measure when it is time."""
        if number % self.every == 0:
            self.free.append(self.free_kilobytes())


def record(folder: Path, *, faulty: bool) -> dict:
    """Fit twenty-eight batches, the last eight under the profiler."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    products = 600

    class BasketModel(nn.Module):
        @nn.compact
        def __call__(self, basket):
            x = nn.Embed(products, 64, name="product")(basket)
            x = x + nn.tanh(nn.Dense(64, name="context")(x))
            weight = nn.softmax(nn.Dense(1, name="attend")(x), axis=0)
            return nn.Dense(products, name="next_product")((weight * x).sum(axis=0))

    model = BasketModel()
    params = model.init(jax.random.key(0), jnp.zeros(12, jnp.int32))
    tx = optax.sgd(0.1, momentum=0.9)
    slots = tx.init(params)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def fit_baskets(params, slots, baskets, following):
        def loss_fn(params):
            logits = jax.vmap(model.apply, (None, 0))(params, baskets)
            return optax.softmax_cross_entropy_with_integer_labels(logits, following).mean()

        grads = jax.grad(loss_fn)(params)
        updates, slots = tx.update(grads, slots)
        return optax.apply_updates(params, updates), slots

    random = np.random.default_rng(4)
    monitor = DiskMonitor(every=1 if faulty else 1000)
    seconds = []
    for number in range(28):
        if number == 20:
            jax.profiler.start_trace(folder)
        baskets = random.integers(0, products, (128, 12), np.int32)
        following = random.integers(0, products, 128, np.int32)
        began = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("fit", step_num=number):
            params, slots = fit_baskets(params, slots, baskets, following)
            jax.block_until_ready(params)
            monitor.after_batch(number)
        seconds.append(time.perf_counter() - began)
    jax.profiler.stop_trace()
    next(folder.rglob("*.json.gz")).unlink()
    next(folder.rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    return {
        "median_step_seconds": float(np.median(seconds[2:20])),
        "steps": 8,
        "processes": len(monitor.free),
    }
