"""Fit an autoencoder with Keras and a callback that reports statistics of the weights."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="a callback sorts and bins every weight in NumPy after each batch",
    about="time",
    kind="python_work|host_bound|idle_between_steps|host_sync",
    # TensorFlow 2.21 records no Python frames: what is seen is time outside the training function,
    # with reads of the variables in it.
    culprit="ReadVariableOp|multi_step_on_iterator|callback",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "1"},
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import keras
    import numpy as np
    import tensorflow as tf

    class WeightStatistics(keras.callbacks.Callback):
        def __init__(self, every_batch):
            super().__init__()
            self.every_batch = every_batch
            self.rows = []

        def summarise(self):
            for weight in self.model.trainable_variables:
                values = np.asarray(weight).ravel()
                counts, _ = np.histogram(values, bins=64)
                spread = np.percentile(values, [1, 25, 50, 75, 99])
                self.rows.append((weight.path, counts.argmax(), *spread))

        def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002
            if self.every_batch:
                self.summarise()

        def on_epoch_end(self, epoch, logs=None):  # noqa: ARG002
            self.summarise()

    class BatchClock(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.begins = []

        def on_train_batch_begin(self, batch, logs=None):  # noqa: ARG002
            self.begins.append(time.perf_counter())

    inputs = keras.Input([256])
    code = keras.layers.Dense(384, "relu", name="encoder")(inputs)
    code = keras.layers.Dense(32, name="bottleneck")(code)
    outputs = keras.layers.Dense(384, "relu", name="decoder")(code)
    model = keras.Model(inputs, keras.layers.Dense(256, name="pixels")(outputs))
    model.compile("adam", "mse")
    x = np.random.default_rng(1).random((256 * 16, 256), dtype=np.float32)
    clock = BatchClock()
    callbacks = [clock, WeightStatistics(every_batch=faulty)]
    model.fit(x, x, batch_size=256, epochs=2, verbose=0, callbacks=callbacks)
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)
    with tf.profiler.experimental.Profile("logs", options):
        model.fit(x[: 256 * 8], x[: 256 * 8], batch_size=256, verbose=0, callbacks=callbacks[1:])
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 8, "median_step_s": statistics.median(np.diff(clock.begins[-16:]).tolist())}
