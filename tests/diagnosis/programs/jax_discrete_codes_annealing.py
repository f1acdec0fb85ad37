"""Train an autoencoder with discrete codes, whose Gumbel noise cools down, in plain JAX."""

from __future__ import annotations

import functools
import math
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the temperature is a static argument with a new value each step, which compiles anew",
    about="time",
    kind=r"recompil|retrac|compil",
    culprit=r"anneal_step",
    is_held_out=True,
    round=2,
)


def temperature_at(step, start=2.0, end=0.5, rate=0.02):
    """Cooler from step to step, down to an end."""
    return max(end, start * math.exp(-rate * step))


def record(folder: Path, *, faulty: bool) -> dict:
    """Train ten steps, and four more under the profiler."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    slots, symbols = 16, 32

    def initialise(key):
        first, second = jax.random.split(key)
        return {
            "encoder": 0.03 * jax.random.normal(first, (784, slots * symbols)),
            "decoder": 0.1 * jax.random.normal(second, (slots * symbols, 784)),
        }

    def gumbel_softmax(uniform, logits, temperature):
        noise = -jnp.log(-jnp.log(uniform))
        return jax.nn.softmax((logits + noise) / temperature)

    def anneal_step(params, images, uniform, temperature):
        def squared_error(params):
            logits = (images @ params["encoder"]).reshape(-1, slots, symbols)
            codes = gumbel_softmax(uniform, logits, temperature).reshape(-1, slots * symbols)
            return jnp.sum((codes @ params["decoder"] - images) ** 2) / len(images)

        loss, slopes = jax.value_and_grad(squared_error)(params)
        return jax.tree.map(lambda p, s: p - 1e-4 * s, params, slopes), loss

    if faulty:
        anneal_step = jax.jit(anneal_step, donate_argnums=0, static_argnames="temperature")
    else:
        anneal_step = functools.partial(jax.jit, donate_argnums=0)(anneal_step)

    params = initialise(jax.random.key(0))
    random = np.random.default_rng(0)
    took = []
    for step in range(14):
        if step == 10:
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            jax.profiler.start_trace(folder / "profile", profiler_options=options)
        images = random.random((256, 784), np.float32)
        uniform = random.uniform(1e-6, 1, (256, slots, symbols)).astype(np.float32)
        start = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("anneal", step_num=step):
            temperature = temperature_at(step)
            params, loss = anneal_step(params, images, uniform, temperature=temperature)
            loss.block_until_ready()
        took.append(time.perf_counter() - start)
    jax.profiler.stop_trace()
    (result,) = (folder / "profile").rglob("*.xplane.pb")
    result.rename(folder / "worker0.xplane.pb")
    next((folder / "profile").rglob("*.json.gz")).unlink()
    return {
        "median_step_seconds": float(np.median(took[1:10])),
        "steps": 4,
        "compiled": anneal_step._cache_size(),
    }
