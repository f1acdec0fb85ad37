"""Train a DQN with a target network from a replay buffer of frames."""

from __future__ import annotations

import functools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each update moves the whole replay buffer to the device to take 64 frames of it",
    about="time",
    kind=r"time_in_copies|host_bound|input_bound|host_sync",
    culprit=r"\bsample\b|\bstage\b|device_put|DevicePut|H2D|jnp\.array|array_constructors",
    line=r"\bsample\b|train\.py:64|array_constructors",
)


class ReplayBuffer:
    """Transitions in NumPy arrays, overwritten in a circle."""

    def __init__(self, capacity, side, random):
        import numpy as np

        self.frames = random.integers(0, 256, (capacity, side * side), np.uint8)
        self.actions = random.integers(0, 4, capacity).astype(np.int32)
        self.rewards = random.standard_normal(capacity).astype(np.float32)
        self.random = random

    def rows(self, count):
        """Places of the transitions of a batch."""
        return self.random.integers(0, len(self.frames) - 1, count)


def record(folder: Path, *, faulty: bool) -> dict:
    """Play updates; five of them under the profiler."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    class QNetwork(nn.Module):
        actions: int

        @nn.compact
        def __call__(self, frames):
            x = frames.astype(jnp.float32) / 255
            for units in (256, 128):
                x = nn.relu(nn.Dense(units)(x))
            return nn.Dense(self.actions)(x)

    network = QNetwork(actions=4)
    tx = optax.sgd(1e-3)

    @jax.jit
    def pick(frames, actions, rewards, rows):
        return frames[rows], actions[rows], rewards[rows], frames[rows + 1]

    def sample(replay, count=64):
        rows = replay.rows(count)
        if faulty:
            stored = [jnp.array(part) for part in (replay.frames, replay.actions, replay.rewards)]
            return pick(*stored, rows)
        frames = replay.frames
        return frames[rows], replay.actions[rows], replay.rewards[rows], frames[rows + 1]

    @functools.partial(jax.jit, donate_argnums=(0, 2))
    def update_q(online, target, opt_state, frames, actions, rewards, after):
        best = network.apply(target, after).max(axis=-1)

        def td_loss(online):
            values = network.apply(online, frames)
            chosen = jnp.take_along_axis(values, actions[:, None], axis=-1)[:, 0]
            return optax.huber_loss(chosen, rewards + 0.99 * best).mean()

        grads = jax.grad(td_loss)(online)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(online, updates), opt_state

    replay = ReplayBuffer(15_000, 48, np.random.default_rng(0))
    online = network.init(jax.random.key(0), jnp.zeros((1, 48 * 48), jnp.uint8))
    target, opt_state = jax.tree.map(jnp.copy, online), tx.init(online)
    seconds = []
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 1
    for update in range(35):
        if update == 30:
            jax.profiler.start_trace(folder, profiler_options=options)
        began = time.perf_counter()
        online, opt_state = update_q(online, target, opt_state, *sample(replay))
        jax.block_until_ready(online)
        if update % 25 == 24:
            target = jax.tree.map(jnp.copy, online)
        seconds.append(time.perf_counter() - began)
    jax.profiler.stop_trace()
    next(folder.rglob("*.json.gz")).unlink()
    next(folder.rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    moved = replay.frames.nbytes + replay.actions.nbytes + replay.rewards.nbytes
    return {
        "median_step_seconds": float(np.median(seconds[5:30])),
        "steps": 5,
        "bytes_moved_in_a_step": moved if faulty else 64 * (2 * 48 * 48 + 8),
    }
