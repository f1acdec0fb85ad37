"""Train a character language model of causal convolutions on sentences, in a tutorial's loop."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="each batch is padded to its own longest sentence, so train_step is traced each step",
    about="time",
    kind="recompilation|retrac",
    culprit="train_step",
    environment={"TF_CPP_MIN_LOG_LEVEL": "2"},
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    vocabulary, hidden = 80, 128
    rng = np.random.default_rng(3)

    class CharModel(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = tf.keras.layers.Embedding(vocabulary, 64)
            self.context = tf.keras.layers.Conv1D(hidden, 5, padding="causal", activation="relu")
            self.logits = tf.keras.layers.Dense(vocabulary, name="logits")

        def call(self, tokens):
            return self.logits(self.context(self.embedding(tokens)))

    def pad(sentences):
        longest = max(len(one) for one in sentences)
        width = longest if faulty else 80
        return np.stack([np.pad(one, (0, width - len(one))) for one in sentences])

    def batches():
        lengths = rng.permutation(np.arange(25, 80))
        for longest in lengths:
            sizes = [*rng.integers(12, longest, 15).tolist(), longest]
            yield tf.constant(pad([rng.integers(1, vocabulary, size) for size in sizes]))

    model = CharModel()
    optimizer = tf.keras.optimizers.SGD(0.1)
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(tokens):
        with tf.GradientTape() as tape:
            loss = loss_object(tokens[:, 1:], model(tokens[:, :-1]))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    data = batches()
    for _ in range(3):
        train_step(next(data))
    seconds = []
    for _ in range(8):
        begin = time.perf_counter()
        train_step(next(data))
        seconds.append(time.perf_counter() - begin)
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    tf.profiler.experimental.start("logs", options)
    for step in range(8):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            loss = train_step(next(data))
    loss.numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 8,
        "median_step_s": statistics.median(seconds),
        "traces": train_step.experimental_get_tracing_count(),
    }
