"""Train a recogniser of letters in speech frame by frame, with an error rate, in Flax linen."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="every step decodes its batch and computes edit distances in Python for the progress",
    about="time",
    kind=r"python_work|host_bound|idle_between_steps|host_sync",
    culprit=r"edit_distance|letter_error_rate|greedy_decode",
    line=r"edit_distance|letter_error_rate|greedy_decode|train\.py:(2[1-9]|3\d|4\d)",
    is_held_out=True,
    round=2,
)


def edit_distance(one, other):
    """How many letters to change, add or remove."""
    row = [*range(len(other) + 1)]
    for a in one:
        corner, row[0] = row[0], row[0] + 1
        for place, b in enumerate(other, 1):
            best = corner if a == b else corner + 1
            corner = row[place]
            best = corner + 1 if corner + 1 < best else best  # noqa: FURB136
            left = row[place - 1] + 1
            row[place] = left if left < best else best  # noqa: FURB136
    return row[-1]


def greedy_decode(letters):
    """Letters without repetitions and blanks."""
    return [int(b) for a, b in zip([0, *letters], letters, strict=False) if b not in (a, 0)]


def letter_error_rate(logits, labels):
    """Share of letters that are wrong."""
    import numpy as np

    best = np.asarray(logits).argmax(axis=-1).tolist()
    wrong = sum(edit_distance(greedy_decode(b), t) for b, t in zip(best, labels, strict=True))
    return wrong / sum(map(len, labels))


def record(folder: Path, *, faulty: bool) -> dict:
    """Train for a while, profile six batches, and evaluate on one more."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    class Recogniser(nn.Module):
        @nn.compact
        def __call__(self, spectrogram):
            x = nn.relu(nn.Conv(96, (5,), strides=(2,), name="subsample")(spectrogram))
            y = jnp.pad(nn.LayerNorm()(x), ((0, 0), (2, 2), (0, 0)))
            y = jnp.concatenate([y[:, shift : shift + x.shape[1]] for shift in range(5)], axis=-1)
            x = x + nn.silu(nn.Dense(96, name="context")(y))
            return nn.Dense(29, name="letters")(x)

    model, tx = Recogniser(), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4))
    params = model.init(jax.random.key(2), jnp.zeros((1, 124, 40)))
    state = (params, tx.init(params))

    @jax.jit
    def train_step(state, spectrogram, labels):
        params, slots = state

        def frame_loss(params):
            logits = model.apply(params, spectrogram)
            aligned = jnp.repeat(labels, logits.shape[1] // labels.shape[1], axis=1)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, aligned)
            return losses.mean(), logits

        (loss, logits), grads = jax.value_and_grad(frame_loss, has_aux=True)(params)
        updates, slots = tx.update(grads, slots, params)
        return (optax.apply_updates(params, updates), slots), loss, logits

    random = np.random.default_rng(11)

    def load_batch(size=24):
        clips = random.standard_normal((size, 124, 40), np.float32)
        return clips, random.integers(1, 29, (size, 62), np.int32)

    def run(state, batches):
        seconds, progress = [], ""
        for number in range(batches):
            spectrogram, labels = load_batch()
            began = time.perf_counter()
            state, loss, logits = train_step(state, spectrogram, labels)
            jax.block_until_ready(state)
            if faulty:
                progress = f"{number}: {letter_error_rate(logits, labels.tolist()):.2f}"
            seconds.append(time.perf_counter() - began)
        return state, seconds, progress or f"{float(loss):.2f}"

    state, _, _ = run(state, 3)
    state, seconds, _ = run(state, 25)
    jax.profiler.start_trace(folder / "events")
    state, _, progress = run(state, 6)
    jax.profiler.stop_trace()
    clips, labels = load_batch()
    rate = letter_error_rate(train_step(state, clips, labels)[2], labels.tolist())
    next(folder.rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next(folder.rglob("*.json.gz")).unlink()
    return {
        "median_step_seconds": float(np.median(seconds)),
        "steps": 6,
        "error_rate": rate,
        "progress": progress,
    }
