"""Predict the height of waves from buoys, with sine and cosine features of what they measure."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the sine and cosine features are float64, because the frequencies are of NumPy's type",
    about="memory",
    kind="float64_memory",
    culprit=r"float64|double|features/",
    savings="precision",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    round=5,
)

ROWS, COLUMNS, BANDS, WIDTH = 1024, 32, 24, 512


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(9)
    frequencies = np.geomspace(0.5, 40.0, BANDS)
    if not faulty:
        frequencies = frequencies.astype("float32")

    def weight(rows, columns):
        return tf.Variable((rng.standard_normal((rows, columns)) / rows**0.5).astype("float32"))

    weights = [weight(2 * COLUMNS * BANDS, WIDTH), weight(WIDTH, WIDTH), weight(WIDTH, 1)]

    def features(measured):
        with tf.name_scope("features"):
            measured = tf.cast(measured, frequencies.dtype)
            angles = tf.reshape(measured[:, :, None] * frequencies, [ROWS, -1])
            waves = tf.concat([tf.sin(angles), tf.cos(angles)], 1)
            return waves - tf.reduce_mean(waves, 0)

    def predict(measured):
        x = tf.cast(features(measured), tf.float32)
        for number, kernel in enumerate(weights[:-1]):
            with tf.name_scope(f"layer_{number}"):
                x = tf.nn.relu(tf.matmul(x, kernel))
        return tf.matmul(x, weights[-1])[:, 0]

    @tf.function
    def train_step(measured, heights):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(predict(measured) - heights))
        for kernel, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            kernel.assign_sub(1e-3 * gradient)
        return loss

    def batch():
        measured = rng.standard_normal((ROWS, COLUMNS)).astype("float32")
        return tf.constant(measured), tf.constant(rng.random(ROWS).astype("float32"))

    seconds = []
    for _ in range(10):
        measured, heights = batch()
        begin = time.perf_counter()
        train_step(measured, heights).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(6):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(*batch()).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 6,
        "median_step_s": statistics.median(seconds[3:]),
        "feature_bytes": ROWS * 2 * COLUMNS * BANDS * (8 if faulty else 4),
    }
