"""Train an LSTM language model on poems and average its last weights, in Flax linen."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the weights of the last five epochs are all on the device, for an average at the end",
    about="memory",
    kind=r"cache|redundant_copy|step_up|leak",
    culprit=r"add_weights|LastWeights|train\.py:(2[89]|3[0-3])",
    line=r"add_weights|train\.py:(2[89]|3[0-3])",
    savings=r"older_copy|duplicate|offload|held|release",
    is_held_out=True,
    round=2,
)


class LastWeights:
    """The mean of the weights of the last epochs."""

    def __init__(self, count):
        self.weights = deque(maxlen=count)

    def add_weights(self, params):
        """One more epoch's weights."""
        import jax
        import jax.numpy as jnp

        self.weights.append(jax.tree.map(jnp.copy, params))

    def average(self):
        """What to evaluate and to save."""
        import jax

        return jax.tree.map(lambda *each: sum(each) / len(each), *self.weights)


class RunningMean:
    """The mean of all weights that were added, in NumPy arrays."""

    def __init__(self):
        self.mean, self.count = None, 0

    def add_weights(self, params):
        """One more epoch's weights."""
        import jax
        import numpy as np

        self.count += 1
        params = jax.tree.map(np.array, params)
        if self.mean is None:
            self.mean = params
        else:
            self.mean = jax.tree.map(lambda m, p: m + (p - m) / self.count, self.mean, params)

    def average(self):
        """What to evaluate and to save."""
        return self.mean


def record(folder: Path, *, faulty: bool) -> dict:
    """Ten short epochs, with the device's memory at the end of each."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    class PoemModel(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(3000, 96, name="words")(tokens)
            x = nn.RNN(nn.LSTMCell(160), name="lstm")(x)
            return nn.Dense(3000, name="lm_head")(x)

    model = PoemModel()
    params = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, 16), jnp.int32))
    tx = optax.sgd(0.5)
    slots = tx.init(params)

    def lstm_step(params, slots, tokens):
        def loss_fn(params):
            logits = model.apply(params, tokens[:, :-1])
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
            return losses.mean()

        updates, slots = tx.update(jax.grad(loss_fn)(params), slots)
        return optax.apply_updates(params, updates), slots

    lstm_step = jax.jit(lstm_step, donate_argnums=(0, 1))
    random = np.random.default_rng(0)
    averaged = LastWeights(5) if faulty else RunningMean()
    in_use = []
    for epoch in range(1, 11):
        for _ in range(2):
            params, slots = lstm_step(params, slots, random.integers(0, 3000, (8, 17), np.int32))
        averaged.add_weights(params)
        jax.block_until_ready(params)
        jax.profiler.save_device_memory_profile(str(folder / f"memory-{epoch:03}.pprof.pb"))
        in_use.append(sum(array.nbytes for array in jax.live_arrays()))
    means = jax.tree.leaves(averaged.average())
    return {
        "bytes_in_use": in_use,
        "steps": 10,
        "bytes_of_weights": sum(leaf.nbytes for leaf in jax.tree.leaves(params)),
        "bytes_of_average": sum(leaf.nbytes for leaf in means),
    }
