"""Fine-tune an encoder on pairs of sentences, with metrics at an interval, in Flax linen."""

from __future__ import annotations

from pathlib import Path

from tests.diagnosis.pair import Pair

BATCH, LENGTH, WIDTH, LAYERS = 32, 48, 96, 2

PAIR = Pair(
    fault="hidden states of each step, unused, stay in the list of outputs up to the log interval",
    about="memory",
    kind=r"sawtooth|leak|held_after_use|accumulated_in_step",
    culprit=r"train_step|fine_tune|train\.py:8[5-8]",
    line=r"train_step|fine_tune|train\.py:8[5-8]",
    savings=r"older_copy|held|leak|release|offload",
    magnitude=(LAYERS + 1) * BATCH * LENGTH * WIDTH * 4,
    tolerance=7.2,  # of one step, or a whole tooth
    round=3,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Save the device's memory after each of twenty-four steps."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn
    from flax import struct
    from flax.training import train_state

    @struct.dataclass
    class ModelOutput:
        """What models of a well-known library return."""

        logits: jax.Array
        hidden_states: tuple | None = None

    class EncoderLayer(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x + nn.SelfAttention(num_heads=4)(nn.LayerNorm()(x))
            return x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(2 * WIDTH)(nn.LayerNorm()(x))))

    class SentencePairClassifier(nn.Module):
        output_hidden_states: bool

        @nn.compact
        def __call__(self, input_ids):
            x = nn.Embed(6000, WIDTH, name="embeddings")(input_ids)
            hidden_states = [x]
            for number in range(LAYERS):
                x = EncoderLayer(name=f"layer_{number}")(x)
                hidden_states.append(x)
            logits = nn.Dense(3, name="classifier")(x[:, 0])
            return ModelOutput(logits, tuple(hidden_states) if self.output_hidden_states else None)

    model = SentencePairClassifier(output_hidden_states=faulty)
    ids = jnp.zeros((1, LENGTH), jnp.int32)
    state = train_state.TrainState.create(
        apply_fn=model.apply,
        params=jax.jit(model.init)(jax.random.key(1), ids)["params"],
        tx=optax.adamw(5e-5),
    )

    def train_step(state, input_ids, labels):
        def loss_fn(params):
            outputs = state.apply_fn({"params": params}, input_ids)
            loss = optax.softmax_cross_entropy_with_integer_labels(outputs.logits, labels)
            return loss.mean(), outputs

        (loss, outputs), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads), loss, outputs

    train_step = jax.jit(train_step, donate_argnums=0)
    random = np.random.default_rng(4)
    in_use, accuracies = [], []

    def fine_tune(state, steps, log_interval):
        losses, outputs, golds = [], [], []
        for step in range(1, steps + 1):
            input_ids = random.integers(0, 6000, (BATCH, LENGTH), np.int32)
            labels = random.integers(0, 3, BATCH, np.int32)
            state, loss, output = train_step(state, input_ids, labels)
            losses.append(loss)
            outputs.append(output)
            golds.append(labels)
            jax.block_until_ready(loss)
            jax.profiler.save_device_memory_profile(folder / f"step_{step:02}.pprof.pb")
            in_use.append(sum(array.nbytes for array in jax.live_arrays()))
            del output
            if step % log_interval == 0:
                guesses = np.concatenate([each.logits for each in outputs]).argmax(axis=-1)
                accuracies.append(float((guesses == np.concatenate(golds)).mean()))
                losses, outputs, golds = [], [], []
        return state

    fine_tune(state, steps=24, log_interval=8)
    one = (LAYERS + 1) * BATCH * LENGTH * WIDTH * 4
    return {"bytes_in_use": in_use, "steps": 24, "bytes_per_step": one if faulty else 0}
