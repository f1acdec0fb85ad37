"""Fit a topic classifier on word ids with Keras, with a validation set after the epoch."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="validation takes a batch 12 times as large as training, and makes the peak",
    about="memory",
    kind="peak_in_evaluation|peak_in_one_step|peak_outside_steps|huge_temporary",
    culprit="words|Gather|evaluat|validation|test",
    savings="batch|temporary",
    magnitude=384 * 100 * 64 * 4,
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
)


def record(folder: Path, *, faulty: bool) -> dict:
    import keras
    import numpy as np
    import tensorflow as tf

    class StepTimes(keras.callbacks.Callback):
        seconds: tuple = ()

        def on_train_batch_begin(self, batch, logs=None):  # noqa: ARG002
            self.begin = time.perf_counter()

        def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002
            self.seconds += (time.perf_counter() - self.begin,)

    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 2000, (32 * 10, 100)), rng.integers(0, 10, 32 * 10)
    x_test, y_test = rng.integers(0, 2000, (384, 100)), rng.integers(0, 10, 384)
    model = keras.Sequential(
        [
            keras.layers.Embedding(2000, 64, name="words"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(64, "relu"),
            keras.layers.Dense(10, activation="softmax", name="topics"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy()
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss)
    clock = StepTimes()
    settings = {
        "batch_size": 32,
        "validation_data": (x_test, y_test),
        "validation_batch_size": len(x_test) if faulty else 32,
        "verbose": 0,
    }
    model.fit(x, y, callbacks=[clock], **settings)
    tf.profiler.experimental.start("logs")
    model.fit(x, y, **settings)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 10,
        "median_step_s": statistics.median(clock.seconds[2:]),
        "word_bytes_of_a_training_batch": 32 * 100 * 64 * 4,
        "word_bytes_of_a_validation_batch": (384 if faulty else 32) * 100 * 64 * 4,
    }
