"""Predict the load of houses from a cosine transform of what their meters read."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="rows are transformed one by one in tf.map_fn, where one product does it for the batch",
    about="time",
    kind="tiny_ops|launch_bound|host_bound|unfused_elementwise|expensive_op",
    culprit=r"map/while|map/Tensor|transform_row|map_fn|while/",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    round=5,
)

HOUSES, READINGS, COSINES, WIDTH = 320, 256, 96, 512


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(8)

    class LoadModel(tf.Module):
        def __init__(self):
            super().__init__()
            sizes = [COSINES, WIDTH, WIDTH, 1]
            self.kernels = [
                tf.Variable(tf.random.normal([sizes[i], sizes[i + 1]], stddev=sizes[i] ** -0.5))
                for i in range(3)
            ]

        def __call__(self, x):
            for kernel in self.kernels[:-1]:
                x = tf.nn.relu(tf.matmul(x, kernel))
            return tf.matmul(x, self.kernels[-1])[:, 0]

    hours = np.arange(READINGS) * np.pi / READINGS
    cosines = np.cos(np.arange(COSINES)[:, None] * (hours + hours[1] / 2))
    cosines = tf.constant(cosines.astype("float32"))

    def transform_row(row):
        mean = tf.reduce_mean(row)
        deviation = tf.math.reduce_std(row)
        return tf.linalg.matvec(cosines, (row - mean) / (deviation + 1e-6))

    def transform(readings):
        if faulty:
            return tf.map_fn(transform_row, readings)
        mean = tf.reduce_mean(readings, 1, keepdims=True)
        deviation = tf.math.reduce_std(readings, 1, keepdims=True)
        return tf.matmul((readings - mean) / (deviation + 1e-6), cosines, transpose_b=True)

    model = LoadModel()

    @tf.function
    def train_step(readings, loads):
        x = transform(readings)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - loads))
        gradients = tape.gradient(loss, model.kernels)
        for kernel, gradient in zip(model.kernels, gradients, strict=True):
            kernel.assign_sub(1e-3 * gradient)
        return loss

    readings = tf.constant(rng.gamma(2.0, 300.0, (HOUSES, READINGS)).astype("float32"))
    loads = tf.constant(rng.random(HOUSES).astype("float32"))
    seconds = []
    for _ in range(25):
        begin = time.perf_counter()
        train_step(readings, loads).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(3):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(readings, loads).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 3, "median_step_s": statistics.median(seconds[5:]), "rows": HOUSES}
