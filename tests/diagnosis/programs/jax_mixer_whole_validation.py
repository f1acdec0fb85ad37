"""Train an MLP-Mixer with epochs, an evaluation after each, and a JSON log, in Flax linen."""

from __future__ import annotations

import functools
import json
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the evaluation runs the whole validation set as one batch",
    about="memory",
    kind=r"peak_in_evaluation|peak_outside_steps|peak_in_one_step|huge_temporary",
    culprit=r"evaluate|eval_step|predict|1536,",
    line=r"evaluate|eval_step|train\.py:(63|73)",
    savings=r"batch|temporary|pieces|fuse|precision",
)


def record(folder: Path, *, faulty: bool) -> dict:
    """One epoch of six steps under the profiler, with its evaluation."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState

    class MixerBlock(nn.Module):
        @nn.compact
        def __call__(self, x):
            y = nn.LayerNorm()(x).swapaxes(1, 2)
            y = nn.Dense(x.shape[1])(nn.relu(nn.Dense(32, name="tokens")(y)))
            x = x + y.swapaxes(1, 2)
            y = nn.relu(nn.Dense(128, name="channels")(x))
            return x + nn.Dense(x.shape[-1])(y)

    class Mixer(nn.Module):
        @nn.compact
        def __call__(self, images):
            side = images.shape[1] // 4
            x = images.reshape(-1, side, 4, side, 4, 3).transpose(0, 1, 3, 2, 4, 5)
            x = nn.Dense(48, name="patches")(x.reshape(-1, side * side, 48))
            x = MixerBlock(name="block")(x)
            return nn.Dense(10, name="classes")(x.mean(axis=1))

    def load_split(random, count):
        return random.random((count, 24, 24, 3), np.float32), random.integers(0, 10, count)

    @functools.partial(jax.jit, donate_argnums=0)
    def train_step(state, images, labels):
        def loss_fn(params):
            logits = state.apply_fn(params, images)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    @jax.jit
    def eval_step(state, images, labels):
        return jnp.sum(state.apply_fn(state.params, images).argmax(axis=-1) == labels)

    random = np.random.default_rng(10)
    train, valid = load_split(random, 192), load_split(random, 1536)
    eval_batch = len(valid[0]) if faulty else 128

    def evaluate(state):
        right = []
        for start in range(0, len(valid[0]), eval_batch):
            images, labels = (part[start : start + eval_batch] for part in valid)
            right.append(eval_step(state, images, labels))
        return sum(map(int, jax.device_get(right))) / len(valid[0])

    def train_epoch(state, epoch):
        lasted = []
        order = random.permutation(len(train[0]))
        for step, start in enumerate(range(0, len(order), 32)):
            rows = order[start : start + 32]
            began = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=6 * epoch + step):
                state, loss = train_step(state, train[0][rows], train[1][rows])
                loss.block_until_ready()
            lasted.append(time.perf_counter() - began)
        with jax.profiler.TraceAnnotation("evaluate"):
            accuracy = evaluate(state)
        log.append(json.dumps({"epoch": epoch, "loss": float(loss), "accuracy": accuracy}))
        return state, lasted

    mixer, log = Mixer(), []
    params = mixer.init(jax.random.key(0), jnp.ones((1, 24, 24, 3)))
    state = TrainState.create(apply_fn=mixer.apply, params=params, tx=optax.sgd(0.1))
    needs = {
        "train_step": train_step.lower(state, train[0][:32], train[1][:32]),
        "eval_step": eval_step.lower(state, valid[0][:eval_batch], valid[1][:eval_batch]),
    }
    state, lasted = train_epoch(state, 0)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2
    jax.profiler.start_trace(folder / "t", profiler_options=options)
    state, lasted = train_epoch(state, 1)
    jax.profiler.stop_trace()
    next((folder / "t").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "t").rglob("*.json.gz")).unlink()
    return {
        "median_step_seconds": float(np.median(lasted)),
        "steps": 6,
        "temporary_bytes": {
            name: lowered.compile().memory_analysis().temp_size_in_bytes
            for name, lowered in needs.items()
        },
        "epochs_logged": len(log),
    }
