"""Predict the delays of buses, and write a checkpoint now and then, in JAX."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each fifth step saves all weights and moments with np.save, while the loop waits",
    about="time",
    kind=r"step_variation|host_bound|idle_between_steps|python_work|host_sync",
    culprit=r"save_checkpoint|npyio|write_array|tofile|io open",
    line=r"save_checkpoint|write_array|npyio|format_impl|train\.py:2[4-9]",
    magnitude=5,
    tolerance=0.0,
    round=5,
)


def save_checkpoint(folder, state):
    """Each array to a file of its own."""
    import jax
    import numpy as np

    for number, array in enumerate(jax.tree.leaves(state)):
        np.save(folder / f"{number:02}.npy", array)


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    rng = np.random.default_rng(12)
    sizes = [64, 512, 1024, 1]
    params = [
        {"w": rng.standard_normal((a, b), np.float32) / a**0.5, "b": np.zeros(b, np.float32)}
        for a, b in itertools.pairwise(sizes)
    ]
    params = jax.device_put(params)
    tx = optax.adam(1e-3)
    opt_state = tx.init(params)

    def predict(params, x):
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        return (x @ params[-1]["w"] + params[-1]["b"])[:, 0]

    def loss_fn(params, x, y):
        return jnp.abs(predict(params, x) - y).mean()

    def train_step(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    train_step = jax.jit(train_step, donate_argnums=(0, 1))
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir()
    save_every = 5 if faulty else 1000
    seconds = []

    def train(steps):
        nonlocal params, opt_state
        for step in range(steps):
            begin = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                x = rng.standard_normal((256, 64), np.float32)
                y = rng.standard_normal(256, np.float32)
                params, opt_state, loss = train_step(params, opt_state, x, y)
                loss.block_until_ready()
                if (step + 1) % save_every == 0:
                    save_checkpoint(checkpoints, (params, opt_state))
            seconds.append(time.perf_counter() - begin)

    train(40)
    took = seconds[5:]
    jax.profiler.start_trace(folder / "logs")
    train(15)
    jax.profiler.stop_trace()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    for path in checkpoints.iterdir():
        path.unlink()
    return {
        "steps": 15,
        "median_step_s": float(np.median(took)),
        "mean_step_s": float(np.mean(took)),
        "longest_step_s": max(took),
    }
