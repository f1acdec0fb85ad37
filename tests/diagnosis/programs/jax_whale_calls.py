"""Find calls of whales in windows of long recordings, by their spectrograms."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

RECORDINGS, FRAMES, FRAME, WINDOW = 8, 1500, 256, 24

PAIR = Pair(
    fault="each step makes the spectrogram of the whole recordings, to take a short window of it",
    about="time",
    kind=r"expensive_op|host_bound",
    culprit=r"\bfft|rfft|spectrogram|train\.py:2[3-5]\b",
    line=r"spectrogram|train\.py:(2[3-5]|47)\b",
    round=7,
)


def spectrogram(jnp, frames):
    """The logarithm of the power of each frequency, for each frame."""
    return jnp.log(jnp.abs(jnp.fft.rfft(frames)) ** 2 + 1e-6)


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    rng = np.random.default_rng(15)
    recordings = jnp.asarray(rng.standard_normal((RECORDINGS, FRAMES, FRAME), np.float32))
    sizes = (WINDOW * (FRAME // 2 + 1), 1024, 512, 2)
    params = [
        jnp.asarray(rng.standard_normal((a, b), np.float32) / a**0.5)
        for a, b in itertools.pairwise(sizes)
    ]
    tx = optax.sgd(1e-3, momentum=0.9)
    opt_state = tx.init(params)

    def window_of(recordings, start):
        take = jax.lax.dynamic_slice_in_dim
        if faulty:
            return take(spectrogram(jnp, recordings), start, WINDOW, 1)
        return spectrogram(jnp, take(recordings, start, WINDOW, 1))

    def loss_fn(params, windows, calls):
        x = windows.reshape(RECORDINGS, -1)
        for weights in params[:-1]:
            x = jax.nn.relu(x @ weights)
        losses = optax.softmax_cross_entropy_with_integer_labels(x @ params[-1], calls)
        return losses.mean()

    def train_step(params, opt_state, recordings, start, calls):
        windows = window_of(recordings, start)
        loss, grads = jax.value_and_grad(loss_fn)(params, windows, calls)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    train_step = jax.jit(train_step, donate_argnums=(0, 1))
    seconds = []

    def train(steps):
        nonlocal params, opt_state
        for step in range(steps):
            start = int(rng.integers(0, FRAMES - WINDOW))
            calls = rng.integers(0, 2, RECORDINGS)
            begin = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                params, opt_state, loss = train_step(params, opt_state, recordings, start, calls)
                loss.block_until_ready()
            seconds.append(time.perf_counter() - begin)

    train(15)
    jax.profiler.start_trace(folder / "logs")
    train(8)
    jax.profiler.stop_trace()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    return {"steps": 8, "median_step_s": float(np.median(seconds[5:15]))}
