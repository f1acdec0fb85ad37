"""Find the language of radio clips; the step masks the features that training sees."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the features are masked by a Python function that the step calls with tf.py_function",
    about="time",
    kind="host_callback|python_work|host_bound|expensive_op|host_sync",
    culprit=r"py_function|EagerPyFunc|PyFunc|mask_bands",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    round=5,
)

CLIPS, FRAMES, BANDS, LANGUAGES = 256, 40, 32, 8


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf
    from tensorflow import keras

    rng = np.random.default_rng(2)

    def mask_bands(features):
        """Blank some bands and some frames of each clip."""
        features = features.numpy().copy()
        for clip in features:
            for _ in range(2):
                band = rng.integers(0, BANDS - 4)
                clip[:, band : band + rng.integers(1, 5)] = 0.0
                frame = rng.integers(0, FRAMES - 6)
                clip[frame : frame + rng.integers(1, 7)] = 0.0
        return features

    def masked(features):
        if faulty:
            result = tf.py_function(mask_bands, [features], tf.float32)
            return tf.ensure_shape(result, features.shape)
        bands = tf.random.uniform([CLIPS, 1, BANDS]) > 0.15
        frames = tf.random.uniform([CLIPS, FRAMES, 1]) > 0.15
        return features * tf.cast(bands & frames, tf.float32)

    model = keras.Sequential(
        [
            keras.layers.Flatten(),
            keras.layers.Dense(512, "relu", name="clip"),
            keras.layers.Dense(LANGUAGES, name="language"),
        ]
    )
    model.build([CLIPS, FRAMES, BANDS])
    optimizer = keras.optimizers.SGD(0.05)
    optimizer.build(model.trainable_variables)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(features, languages):
        features = masked(features)
        with tf.GradientTape() as tape:
            loss = loss_fn(languages, model(features, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    features = tf.random.normal([CLIPS, FRAMES, BANDS])
    languages = tf.random.uniform([CLIPS], 0, LANGUAGES, tf.int32)
    seconds = []
    for _ in range(25):
        begin = time.perf_counter()
        train_step(features, languages).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(6):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(features, languages).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 6, "median_step_s": statistics.median(seconds[5:])}
