"""Forecast energy use with a Keras MLP; callbacks clock the batches and draw a sample forecast."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="a callback calls model.predict at each fourth batch, while training waits",
    about="time",
    kind="step_variation|idle_between_steps|host_bound|python_work",
    culprit="predict|one_step_on_data|MakeIterator|ForecastPreview",
    magnitude=4,
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    is_held_out=True,
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import keras
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    rng = np.random.default_rng(6)
    history = rng.normal(size=(256 * 24, 168)).astype(np.float32)
    use = history[:, -24:] + 0.1 * rng.normal(size=(len(history), 24)).astype(np.float32)

    class ForecastPreview(keras.callbacks.Callback):
        def __init__(self, x, every=None):
            super().__init__()
            self.x, self.every, self.curves = x, every, []

        def draw(self):
            self.curves.append(self.model.predict(self.x, batch_size=32, verbose=0).mean(0))

        def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002
            if self.every and batch % self.every == 0:
                self.draw()

        def on_epoch_end(self, epoch, logs=None):  # noqa: ARG002
            self.draw()

    class ProfileBatches(keras.callbacks.Callback):
        def __init__(self, first, last):
            super().__init__()
            self.first, self.last, self.seconds, self.trace = first, last, [], None

        def on_train_batch_begin(self, batch, logs=None):  # noqa: ARG002
            if batch == self.first:
                tf.profiler.experimental.start("logs")
            self.begin = time.perf_counter()
            self.trace = tf.profiler.experimental.Trace("train", step_num=batch, _r=1)
            self.trace.__enter__()

        def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002
            self.trace.__exit__(None, None, None)
            self.seconds.append(time.perf_counter() - self.begin)
            if batch == self.last:
                tf.profiler.experimental.stop()

    model = keras.Sequential(
        [
            keras.Input([168]),
            keras.layers.Dense(768, "relu"),
            keras.layers.Dense(768, "relu"),
            keras.layers.Dense(24, name="hours"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.01), "mae", jit_compile=False)
    profiler = ProfileBatches(first=11, last=22)
    preview = ForecastPreview(history[:256], every=4 if faulty else None)
    model.fit(history, use, batch_size=256, verbose=0, callbacks=[preview, profiler])
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 12,
        "median_step_s": statistics.median(profiler.seconds[3:11]),
        "mean_step_s": statistics.mean(profiler.seconds[3:11]),
        "max_step_s": max(profiler.seconds[3:11]),
    }
