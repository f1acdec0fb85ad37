"""Train a sentiment classifier over bags of words, in Flax NNX."""

from __future__ import annotations

import functools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="words are embedded by a product with their one-hot vectors, as long as the vocabulary",
    about="memory",
    kind=r"huge_temporary",
    culprit=r"one_hot|WordVectors|4096",
    line=r"one_hot|WordVectors|train\.py:38",
    savings=r"temporary|precision|batch|fuse|recompute|pieces",
    magnitude=64 * 32 * 4096 * 4,
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Train twelve steps, the last four of them profiled."""
    import jax
    import numpy as np
    import optax
    from flax import nnx

    vocabulary = 4096

    class WordVectors(nnx.Module):
        def __init__(self, width, *, rngs):
            self.table = nnx.Param(0.02 * rngs.params.normal((vocabulary, width)))

        def __call__(self, words):
            if faulty:
                return jax.nn.one_hot(words, vocabulary) @ self.table[...]
            return self.table[...][words]

    class Sentiment(nnx.Module):
        def __init__(self, *, rngs):
            self.vectors = WordVectors(96, rngs=rngs)
            self.hidden = nnx.Linear(96, 64, rngs=rngs)
            self.dropout = nnx.Dropout(0.1, rngs=rngs)
            self.label = nnx.Linear(64, 2, rngs=rngs)

        def __call__(self, words):
            x = self.vectors(words).mean(axis=1)
            return self.label(self.dropout(nnx.relu(self.hidden(x))))

    def cross_entropy(model, words, labels):
        logits = model(words)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    @functools.partial(nnx.jit, donate_argnums=(0, 1))
    def train_step(model, optimizer, metrics, words, labels):
        loss, grads = nnx.value_and_grad(cross_entropy)(model, words, labels)
        metrics.update(values=loss)
        optimizer.update(model, grads)

    model = Sentiment(rngs=nnx.Rngs(0, dropout=1))
    optimizer = nnx.Optimizer(model, optax.sgd(0.5), wrt=nnx.Param)
    metrics = nnx.metrics.Average()
    random = np.random.default_rng(5)
    example = (np.zeros((64, 32), np.int32), np.zeros(64, np.int32))
    lowered = train_step.lower(model, optimizer, metrics, *example)
    needs = lowered.compile().memory_analysis()
    seconds = []
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    for step in range(12):
        if step == 8:
            jax.profiler.start_trace(folder / "tensorboard", profiler_options=options)
        words = random.integers(0, vocabulary, (64, 32), np.int32)
        labels = random.integers(0, 2, 64, np.int32)
        began = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            train_step(model, optimizer, metrics, words, labels)
            jax.block_until_ready(nnx.state(model))
        seconds.append(time.perf_counter() - began)
    jax.profiler.stop_trace()
    for path in list((folder / "tensorboard").rglob("*")):
        if path.suffix == ".pb":
            path.rename(folder / "worker0.xplane.pb")
        elif path.suffix == ".gz":
            path.unlink()
    return {
        "median_step_seconds": float(np.median(seconds[2:8])),
        "steps": 4,
        "temporary_bytes": needs.temp_size_in_bytes,
        "average_loss": float(metrics.compute()),
    }
