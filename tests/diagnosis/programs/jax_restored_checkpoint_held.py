"""Resume the training of a text classifier from a checkpoint, with Flax linen's TrainState."""

from __future__ import annotations

import pickle
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the restored checkpoint stays on the device beside the state that was made from it",
    about="memory",
    kind=r"redundant_copy|held_after_use|peak_outside_steps",
    culprit=r"restore_checkpoint|train\.py:5[12]",
    line=r"restore_checkpoint|train\.py:5[12]",
    savings=r"older_copy|duplicate|copy|held|release",
    magnitude=13_110_008,  # weights and two moments of Adam
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Resume, train four steps, and save the device's memory after each."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn
    from flax import serialization
    from flax.training import train_state

    class TextClassifier(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(8000, 128)(tokens).mean(axis=1)
            for units in (256, 128):
                x = nn.relu(nn.Dense(units)(x))
            return nn.Dense(20)(x)

    model = TextClassifier()

    def create_train_state(key):
        params = model.init(key, jnp.zeros((1, 64), jnp.int32))["params"]
        return train_state.TrainState.create(
            apply_fn=model.apply, params=params, tx=optax.adamw(2e-4)
        )

    def save_checkpoint(path, state):
        path.write_bytes(pickle.dumps(jax.device_get(serialization.to_state_dict(state))))

    def restore_checkpoint(path, target):
        restored = jax.device_put(pickle.loads(path.read_bytes()))  # noqa: S301
        copied = jax.tree.map(jnp.copy, restored)
        return serialization.from_state_dict(target, copied), restored

    @jax.jit
    def apply_batch(state, tokens, labels):
        def loss(params):
            logits = state.apply_fn({"params": params}, tokens)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        return state.apply_gradients(grads=jax.grad(loss)(state.params))

    path = folder / "checkpoint.pickle"
    save_checkpoint(path, create_train_state(jax.random.key(0)))
    state, checkpoint = restore_checkpoint(path, create_train_state(jax.random.key(1)))
    path.unlink()
    if not faulty:
        del checkpoint
    random = np.random.default_rng(0)
    in_use = []
    for step in range(1, 5):
        tokens = random.integers(0, 8000, (32, 64), np.int32)
        state = apply_batch(state, tokens, random.integers(0, 20, 32, np.int32))
        jax.block_until_ready(state)
        jax.profiler.save_device_memory_profile(folder / f"step_{step}.pprof.pb")
        in_use.append(sum(array.nbytes for array in jax.live_arrays()))
    return {
        "bytes_in_use": in_use,
        "steps": 4,
        "bytes_of_weights": sum(leaf.nbytes for leaf in jax.tree.leaves(state.params)),
        "bytes_of_state": sum(leaf.nbytes for leaf in jax.tree.leaves(state)),
        "restored_step": int(checkpoint["step"]) if faulty else 0,
    }
