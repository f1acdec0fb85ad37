"""Train a fixed-window language model in JAX, with Flax and Optax, on random text."""

from __future__ import annotations

import functools
import shutil
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="float(loss) in every step, so that the host never prepares a batch while a step runs",
    about="time",
    kind=r"host_sync|host_bound|idle_between_steps",
    culprit=r"__float__|float\(|train_epoch|_value\b|np\.asarray",
    line=r"train_epoch|train\.py:74|_value\b|__float__",
    environment={"NPROC": "1"},
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Train some steps, then profile some more."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState

    class LanguageModel(nn.Module):
        vocabulary: int = 1024
        width: int = 64

        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(self.vocabulary, self.width)(tokens)
            x = x.reshape(x.shape[0], -1)
            x = nn.tanh(nn.Dense(256, name="hidden")(x))
            return nn.Dense(self.vocabulary, name="lm_head")(x)

    corpus = np.random.default_rng(0).integers(0, 1024, 2_000_000)
    random = np.random.default_rng(1)

    def sample_batch(size=512, length=8):
        """Windows of the corpus, the rarer their words the likelier."""
        starts = random.integers(0, len(corpus) - length - 1, 40_000)
        windows = corpus[starts[:, None] + np.arange(length + 1)]
        rarity = np.log1p(windows).sum(axis=1)
        chosen = random.choice(len(starts), size, replace=False, p=rarity / rarity.sum())
        return windows[chosen].astype(np.int32)

    model = LanguageModel()
    params = model.init(jax.random.key(0), jnp.zeros((1, 8), jnp.int32))["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))

    @functools.partial(jax.jit, donate_argnums=0)
    def train_step(state, batch):
        def loss_fn(params):
            logits = state.apply_fn({"params": params}, batch[:, :-1])
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, -1])
            return loss.mean()

        loss, grads = jax.value_and_grad(loss_fn)(state.params)
        return state.apply_gradients(grads=grads), loss

    def train_epoch(state, steps, log_every=8):
        average = 0.0
        for step in range(steps):
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                state, loss = train_step(state, sample_batch())
                if faulty:
                    average = 0.98 * average + 0.02 * float(loss)
            if not faulty and step % log_every == log_every - 1:
                average = 0.8 * average + 0.2 * float(loss)
        return jax.block_until_ready(state)

    state = train_epoch(state, 8)
    started = time.perf_counter()
    state = train_epoch(state, 48)
    seconds = (time.perf_counter() - started) / 48
    jax.profiler.start_trace(folder / "log")
    train_epoch(state, 8)
    jax.profiler.stop_trace()
    shutil.move(next((folder / "log").rglob("*.xplane.pb")), folder / "worker0.xplane.pb")
    shutil.rmtree(folder / "log")
    return {"median_step_seconds": seconds, "steps": 8}
