"""Train a wide tabular network whose gradients are clipped, in pure Optax."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import NamedTuple

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="gradients are clipped at a quantile of all their entries, which sorts them each step",
    about="time",
    kind=r"expensive_op",
    culprit=r"sort|quantile|percentile",
    line=r"clip_by_quantile|update_fn|quantile|train\.py:3[67]",
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Run the steps; the profiler is on for the last eight."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    class Batch(NamedTuple):
        x: jax.Array
        y: jax.Array

    def clip_by_quantile(q):
        def update_fn(updates, state, params=None):
            del params
            flat = jnp.concatenate([jnp.abs(leaf).ravel() for leaf in jax.tree.leaves(updates)])
            bound = jnp.quantile(flat, q)
            return jax.tree.map(lambda leaf: jnp.clip(leaf, -bound, bound), updates), state

        return optax.GradientTransformation(lambda _: optax.EmptyState(), update_fn)

    clip = clip_by_quantile(0.99) if faulty else optax.clip_by_global_norm(1.0)
    optimizer = optax.chain(clip, optax.add_decayed_weights(1e-5), optax.sgd(3e-3))
    keys = jax.random.split(jax.random.key(5), 3)
    params = {
        "embed": jax.random.normal(keys[0], (120, 256)) * 0.09,
        "mix": jax.random.normal(keys[1], (256, 192)) * 0.06,
        "head": jax.random.normal(keys[2], (192, 1)) * 0.07,
    }
    opt_state = optimizer.init(params)

    def forward(params, x):
        hidden = jax.nn.relu(x @ params["embed"])
        return (jax.nn.relu(hidden @ params["mix"]) @ params["head"]).squeeze(-1)

    def loss_fn(params, batch):
        return optax.l2_loss(forward(params, batch.x), batch.y).mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def make_step(params, opt_state, batch):
        grads = jax.grad(loss_fn)(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    random = np.random.default_rng(8)
    xs = jax.device_put(random.standard_normal((8192, 120)).astype(np.float32))
    ys = jax.device_put(random.standard_normal(8192).astype(np.float32))
    seconds = []
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    for i in range(30):
        if i == 22:
            jax.profiler.start_trace(folder, profiler_options=options)
        tic = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train", step_num=i):
            start = 1024 * (i % 8)
            batch = Batch(xs[start : start + 1024], ys[start : start + 1024])
            params, opt_state = make_step(params, opt_state, batch)
            jax.block_until_ready(params)
        seconds.append(time.perf_counter() - tic)
    jax.profiler.stop_trace()
    next(folder.rglob("*.trace.json.gz")).unlink()
    next(folder.rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    return {
        "median_step_seconds": float(np.median(seconds[9:22])),
        "steps": 8,
        "sorted_entries": weights if faulty else 0,
    }
