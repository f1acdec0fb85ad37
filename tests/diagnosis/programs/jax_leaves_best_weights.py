"""Classify leaves by a convolutional network, with callbacks in the manner of Keras."""

from __future__ import annotations

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the callback holds a copy of the best weights and moments on the device",
    about="memory",
    kind=r"step_up|redundant_copy|optimizer_state|held_after_use",
    culprit=r"RestoreBest|on_epoch_end|on_device|train\.py:(29|3[0-3]|69|70)",
    line=r"on_epoch_end|on_device|train\.py:(29|3[0-3]|69|70)",
    savings=r"older_copy|duplicate|offload|held|release",
    magnitude=14_441_288,
    is_held_out=True,
    round=2,
)


class RestoreBest:
    """Remembers the state of the best epoch from ``start_from_epoch`` on."""

    def __init__(self, take_copy, start_from_epoch):
        self.take_copy, self.start_from_epoch = take_copy, start_from_epoch
        self.best, self.state = float("inf"), None

    def on_epoch_end(self, epoch, state, loss):
        """Take the state if it is better than all before."""
        if epoch >= self.start_from_epoch and loss < self.best:
            self.best, self.state = loss, None
            self.state = self.take_copy(state)


def record(folder: Path, *, faulty: bool) -> dict:
    """Eight epochs of three batches each, with the device's memory after each epoch."""
    import functools

    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState

    class LeafNetwork(nn.Module):
        @nn.compact
        def __call__(self, images):
            x = nn.relu(nn.Conv(24, (3, 3), strides=(2, 2))(images))
            x = nn.relu(nn.Conv(48, (3, 3), strides=(2, 2))(x))
            x = nn.relu(nn.Dense(384, name="features")(x.reshape(x.shape[0], -1)))
            return nn.Dense(32, name="species")(x)

    def create_state(key):
        network = LeafNetwork()
        params = network.init(key, jnp.zeros((1, 32, 32, 3)))["params"]
        return TrainState.create(apply_fn=network.apply, params=params, tx=optax.adam(1e-3))

    @functools.partial(jax.jit, donate_argnums=0)
    def train_on_batch(state, images, species):
        def cross_entropy(params):
            logits = state.apply_fn({"params": params}, images)
            return optax.softmax_cross_entropy_with_integer_labels(logits, species).mean()

        loss, grads = jax.value_and_grad(cross_entropy)(state.params)
        return state.apply_gradients(grads=grads), loss

    def on_device(state):
        return jax.tree.map(jnp.copy, state)

    def on_host(state):
        return jax.tree.map(np.array, state.params)

    random = np.random.default_rng(2)
    images = random.random((3, 32, 32, 32, 3), np.float32)
    species = random.integers(0, 32, (3, 32), np.int32)
    callback = RestoreBest(on_device if faulty else on_host, start_from_epoch=3)
    state = create_state(jax.random.key(0))
    in_use = []
    for epoch in range(8):
        for batch in zip(images, species, strict=True):
            state, loss = train_on_batch(state, *batch)
        callback.on_epoch_end(epoch, state, float(loss))
        jax.profiler.save_device_memory_profile(folder / f"epoch_{epoch:02}.pprof.pb")
        in_use.append(sum(array.nbytes for array in jax.live_arrays()))
    return {
        "bytes_in_use": in_use,
        "steps": 8,
        "bytes_of_state": sum(leaf.nbytes for leaf in jax.tree.leaves(state)),
        "best_loss": callback.best,
    }
