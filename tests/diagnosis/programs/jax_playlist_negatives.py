"""Train a recommender of songs for playlists, on audio features, with sampled negatives."""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="negatives are drawn without replacement, which shuffles the whole catalogue each step",
    about="time",
    kind=r"expensive_op",
    culprit=r"sort|shuffle|permut|draw_negatives|choice",
    line=r"draw_negatives|train\.py:4[2-5]|choice|shuffle|permut",
    is_held_out=True,
    round=4,
)


def parse(words=()):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalogue", type=int, default=80_000)
    parser.add_argument("--negatives", type=int, default=640)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--songs", type=int, default=12, help="per playlist")
    parser.add_argument("--lr", type=float, default=0.02)
    return parser.parse_args(list(words))


def record(folder: Path, *, faulty: bool) -> dict:
    """Train for a while, and eight more steps under the profiler."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.nn import gelu

    args = parse()

    def draw_negatives(key):
        if faulty:
            return jax.random.choice(key, args.catalogue, (args.negatives,), replace=False)
        return jax.random.randint(key, (args.negatives,), 0, args.catalogue)

    def tower(layers, x):
        for number, (kernel, bias) in enumerate(layers):
            x = x @ kernel + bias
            x = gelu(x) if number + 1 < len(layers) else x
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def sampled_loss(towers, audio, playlists, following, negatives):
        query = tower(towers["playlist"], audio[playlists].mean(axis=1))
        right = tower(towers["song"], audio[following])
        wrong = tower(towers["song"], audio[negatives])
        scores = jnp.concatenate([jnp.sum(query * right, -1, keepdims=True), query @ wrong.T], 1)
        return -jax.nn.log_softmax(10.0 * scores)[:, 0].mean()

    @jax.jit
    def train_step(towers, key, audio, playlists, following):
        key, draw = jax.random.split(key)
        loss, grads = jax.value_and_grad(sampled_loss)(
            towers, audio, playlists, following, draw_negatives(draw)
        )
        towers = jax.tree.map(lambda weight, grad: weight - args.lr * grad, towers, grads)
        return towers, key, loss

    rng = np.random.default_rng(31)

    def new_tower(*sizes):
        return [
            (rng.standard_normal((a, b), np.float32) / a**0.5, np.zeros(b, np.float32))
            for a, b in itertools.pairwise(sizes)
        ]

    def batch():
        shape = (args.batch_size, args.songs)
        playlists = rng.integers(0, args.catalogue, shape, np.int32)
        return playlists, rng.integers(0, args.catalogue, args.batch_size, np.int32)

    audio = jnp.asarray(rng.standard_normal((args.catalogue, 48), np.float32))
    towers = jax.device_put({name: new_tower(48, 512, 512, 64) for name in ("playlist", "song")})
    key, took = jax.random.key(2), []

    def run(steps):
        nonlocal towers, key
        for step in range(steps):
            began = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                towers, key, loss = train_step(towers, key, audio, *batch())
                loss.block_until_ready()
            took.append(time.perf_counter() - began)

    run(25)
    jax.profiler.start_trace(folder / "logs")
    run(8)
    jax.profiler.stop_trace()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    return {"median_step_seconds": float(np.median(took[5:25])), "steps": 8}
