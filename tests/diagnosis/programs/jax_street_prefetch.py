"""Segment street scenes, with batches made ready on the device, as in the examples of Flax."""

from __future__ import annotations

import collections
import itertools
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="sixteen batches are made ready on the device ahead of the step, where two are enough",
    about="memory",
    kind=r"held_after_use|redundant_copy|cache|step_up|near_capacity|one_pass|batches_ahead",
    culprit=r"prefetch|to_device|enqueue|scale_pixels",
    line=r"prefetch|to_device|enqueue|scale_pixels|train\.py:(2[5-9]|3[0-4])",
    savings=r"older_copy|offload|held|cache|batch|release",
    is_held_out=True,
    round=4,
)


def prefetch_to_device(batches, size, to_device):
    """Batches of an iterator, ``size`` of them ahead on the device."""
    queue = collections.deque()

    def enqueue(count):
        for batch in itertools.islice(batches, count):
            queue.append(to_device(batch))

    enqueue(size)
    while queue:
        yield queue.popleft()
        enqueue(1)


def record(folder: Path, *, faulty: bool) -> dict:
    """Save the device's memory after each of eight steps."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    class SceneNet(nn.Module):
        classes: int = 12

        @nn.compact
        def __call__(self, scenes):
            x = nn.relu(nn.Conv(64, (8, 8), strides=(8, 8), name="patches")(scenes))
            for number in range(2):
                x = x + nn.Dense(64)(nn.relu(nn.Dense(1024, name=f"block_{number}")(x)))
            x = nn.Dense(self.classes * 64, name="pixels")(x)
            n, rows, columns, _ = x.shape
            x = x.reshape(n, rows, columns, 8, 8, self.classes).transpose(0, 1, 3, 2, 4, 5)
            return x.reshape(n, 8 * rows, 8 * columns, self.classes)

    @jax.jit
    def scale_pixels(scenes):
        return (scenes.astype(jnp.float32) - 127.0) / 64.0

    def to_device(batch):
        return {"scenes": scale_pixels(batch["scenes"]), "labels": jnp.asarray(batch["labels"])}

    def street_scenes(seed, side=128, batch_size=8):
        rng = np.random.default_rng(seed)
        while True:
            yield {
                "scenes": rng.integers(0, 256, (batch_size, side, side, 3), np.uint8),
                "labels": rng.integers(0, 12, (batch_size, side, side), np.int32),
            }

    net = SceneNet()
    tx = optax.adamw(1e-3)
    params = jax.jit(net.init)(jax.random.key(5), jnp.zeros((1, 128, 128, 3)))
    opt_state = tx.init(params)

    @jax.jit(donate_argnums=(0, 1))
    def train_step(params, opt_state, batch):
        def loss_fn(params):
            logits = net.apply(params, batch["scenes"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    batches = prefetch_to_device(street_scenes(9), 16 if faulty else 2, to_device)
    in_use, losses = [], []
    for step, batch in enumerate(itertools.islice(batches, 8)):
        params, opt_state, loss = train_step(params, opt_state, batch)
        losses.append(float(loss))
        jax.profiler.save_device_memory_profile(folder / f"step{step}.pprof.pb", backend="cpu")
        in_use.append(sum(array.nbytes for array in jax.live_arrays()))
    return {
        "steps": 8,
        "bytes_in_use": in_use,
        "batch_bytes": sum(array.nbytes for array in batch.values()),
        "last_loss": losses[-1],
    }
