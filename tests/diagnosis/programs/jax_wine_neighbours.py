"""Rank wines by taste: the loss is over the nearest wines of each, from a large cellar."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="all wines are sorted by similarity, where only the highest is used",
    about="time",
    kind=r"expensive_op",
    culprit=r"\bsort|argsort|nearest",
    line=r"nearest|sort|train\.py:(3[7-9]|45)",
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    rng = np.random.default_rng(3)
    wines = jnp.asarray(rng.standard_normal((2400, 96), np.float32))
    params = {
        "taste": jnp.asarray(rng.standard_normal((96, 512), np.float32) / 10),
        "space": jnp.asarray(rng.standard_normal((512, 64), np.float32) / 23),
    }

    def embed(params, x):
        x = jax.nn.relu(x @ params["taste"]) @ params["space"]
        return x / jnp.linalg.norm(x, axis=1, keepdims=True)

    def nearest(similarity):
        if faulty:
            return jnp.sort(similarity, axis=1)[:, -1]
        return jnp.max(similarity, axis=1)

    def loss_fn(params, wines, anchors, positives):
        cellar = embed(params, wines)
        a, b = embed(params, anchors), embed(params, positives)
        hardest = nearest(a @ cellar.T)
        return jax.nn.relu(0.2 + hardest - jnp.sum(a * b, axis=1)).mean()

    tx = optax.sgd(0.05)
    opt_state = tx.init(params)

    @jax.jit
    def train_step(params, opt_state, wines, anchors, positives):
        loss, grads = jax.value_and_grad(loss_fn)(params, wines, anchors, positives)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    def train(params, opt_state, steps):
        seconds = []
        for step in range(steps):
            anchors = rng.standard_normal((64, 96), np.float32)
            positives = anchors + 0.1 * rng.standard_normal((64, 96), np.float32)
            begin = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                params, opt_state, loss = train_step(params, opt_state, wines, anchors, positives)
                loss.block_until_ready()
            seconds.append(time.perf_counter() - begin)
        return params, opt_state, seconds

    params, opt_state, _ = train(params, opt_state, 5)
    params, opt_state, seconds = train(params, opt_state, 25)
    jax.profiler.start_trace(folder / "logs")
    train(params, opt_state, 8)
    jax.profiler.stop_trace()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    return {"steps": 8, "median_step_s": float(np.median(seconds))}
