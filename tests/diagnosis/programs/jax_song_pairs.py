"""Learn vectors of songs from how often two of them are in one playlist."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="songs go through the layer one by one in lax.map, where one product does it for all",
    about="time",
    kind=r"tiny_ops|expensive_op|launch_bound|unfused_elementwise|host_bound",
    culprit=r"while|lax\.map|hidden_layer|one_song|train\.py:(2[7-9]|3[0-6])",
    line=r"hidden_layer|one_song|train\.py:(2[7-9]|3[0-6])",
    round=6,
)

SONGS, WIDTH, PAIRS = 200, 192, 6000


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np

    def hidden_layer(songs, weight):
        if not faulty:
            return jax.nn.relu(songs @ weight)

        def one_song(song):
            return jax.nn.relu(song @ weight)

        return jax.lax.map(one_song, songs)

    def loss_fn(params, counts):
        weight = jnp.minimum(counts / 10, 1.0) ** 0.75
        rows = hidden_layer(params["songs"], params["hidden"])
        error = rows @ params["context"].T + params["bias"] - jnp.log1p(counts)
        return (weight * error**2).sum() / PAIRS

    @jax.jit
    def train_step(params, first, second):
        counts = jnp.zeros((SONGS, SONGS)).at[first, second].add(1.0)
        loss, grads = jax.value_and_grad(loss_fn)(params, counts)
        return jax.tree.map(lambda weight, grad: weight - 0.01 * grad, params, grads), loss

    rng = np.random.default_rng(5)
    params = {
        "songs": jnp.asarray(rng.standard_normal((SONGS, WIDTH), np.float32) / 10),
        "hidden": jnp.asarray(rng.standard_normal((WIDTH, 768), np.float32) / 10),
        "context": jnp.asarray(rng.standard_normal((SONGS, 768), np.float32) / 22),
        "bias": jnp.zeros(SONGS),
    }
    seconds = []

    def train(params, steps):
        for step in range(steps):
            first, second = rng.integers(0, SONGS, (2, PAIRS), np.int32)
            begin = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                params, loss = train_step(params, first, second)
                loss.block_until_ready()
            seconds.append(time.perf_counter() - begin)
        return params

    params = train(params, 15)
    jax.profiler.start_trace(folder / "logs")
    train(params, 3)
    jax.profiler.stop_trace()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    return {"steps": 3, "median_step_s": float(np.median(seconds[4:15]))}
