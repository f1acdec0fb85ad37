"""Train a pose estimator over clips of differing lengths, with Flax linen."""

from __future__ import annotations

import functools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each batch is padded to its own longest clip, so that nearly each step compiles again",
    about="time",
    kind=r"recompil|retrac|compil",
    culprit=r"update_model",
    line=r"",
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Train once over the clips of all lengths, then profile three new batches."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    random = np.random.default_rng(11)

    class PoseNet(nn.Module):
        joints: int = 17

        @nn.compact
        def __call__(self, frames, mask):
            x = nn.relu(nn.Dense(128, name="stem")(frames * mask[..., None]))
            return nn.Dense(self.joints * 2, name="joints")(x)

    def clips(longest, size=16):
        lengths = np.append(random.integers(20, longest, size - 1), longest)
        return [random.standard_normal((length, 34), np.float32) for length in lengths]

    def collate(samples):
        longest = max(len(sample) for sample in samples)
        if not faulty:
            longest = next(bucket for bucket in (64, 128, 192) if bucket >= longest)
        batch = np.zeros((len(samples), longest, 34), np.float32)
        mask = np.zeros((len(samples), longest), np.float32)
        for row, sample in enumerate(samples):
            batch[row, : len(sample)] = sample
            mask[row, : len(sample)] = 1
        return batch, mask

    net = PoseNet()
    tx = optax.sgd(0.05)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update_model(params, opt_state, batch, mask):
        def masked_error(params):
            error = jnp.square(net.apply(params, batch, mask) - batch).mean(axis=-1)
            return (error * mask).sum() / mask.sum()

        error, grads = jax.value_and_grad(masked_error)(params)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, error

    def train_loop(params, opt_state, longest):
        seconds = []
        for number, frames in enumerate(longest):
            batch, mask = collate(clips(frames))
            began = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                params, opt_state, error = update_model(params, opt_state, batch, mask)
                jax.block_until_ready(error)
            seconds.append(time.perf_counter() - began)
        return params, opt_state, seconds

    params = net.init(jax.random.key(0), *collate(clips(64)))
    params, opt_state, _ = train_loop(params, tx.init(params), (64, 128, 192))
    params, opt_state, seconds = train_loop(params, opt_state, range(101, 163, 4))
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(folder / "run", profiler_options=options)
    train_loop(params, opt_state, (110, 87, 150))
    jax.profiler.stop_trace()
    for path in sorted((folder / "run").rglob("*.*")):
        if "xplane" in path.name:
            path.replace(folder / "worker0.xplane.pb")
        elif path.is_file():
            path.unlink()
    return {
        "median_step_seconds": float(np.median(seconds)),
        "steps": 3,
        "compilations": 3 * faulty,
    }
