"""A tabular MLP on census rows with normalised columns, an input pipeline and a NumPy table."""

from __future__ import annotations

import statistics
import time
from itertools import pairwise
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the table is float64 as NumPy made it, and so are all layers",
    about="time",
    kind="float64",
    culprit="double|float64|DT_DOUBLE",
    savings="precision",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
)

ROWS, COLUMNS, HIDDEN = 1024, 80, 256


class CensusModel:
    def __init__(self, tf, mean, deviation):
        self.tf, self.mean, self.deviation = tf, mean, deviation
        sizes = [COLUMNS, HIDDEN, HIDDEN, 1]
        self.layers = [
            (
                tf.Variable(tf.random.normal([a, b], stddev=a**-0.5, dtype=mean.dtype)),
                tf.Variable(tf.zeros([b], dtype=mean.dtype)),
            )
            for a, b in pairwise(sizes)
        ]
        self.variables = [one for layer in self.layers for one in layer]

    def __call__(self, rows):
        x = (rows - self.mean) / self.deviation
        for kernel, bias in self.layers[:-1]:
            x = self.tf.nn.relu(x @ kernel + bias)
        kernel, bias = self.layers[-1]
        return (x @ kernel + bias)[:, 0]


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(11)
    table = rng.gamma(2.0, 3.0, size=(4 * ROWS, COLUMNS))
    income = table[:, :5].sum(1) + rng.normal(size=len(table))
    if not faulty:
        table, income = table.astype(np.float32), income.astype(np.float32)
    model = CensusModel(tf, table.mean(0), table.std(0))
    blocks = (table.reshape(4, ROWS, COLUMNS), income.reshape(4, ROWS))
    rows = iter(tf.data.Dataset.from_tensor_slices(blocks).repeat().prefetch(2))

    @tf.function
    def gradient_step(x, y):
        with tf.GradientTape() as tape:
            mse = tf.reduce_mean(tf.math.squared_difference(model(x), y))
        for variable, gradient in zip(
            model.variables, tape.gradient(mse, model.variables), strict=True
        ):
            variable.assign_sub(1e-3 * gradient)
        return mse

    seconds = []
    for _ in range(20):
        begin = time.perf_counter()
        gradient_step(*next(rows)).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for number in range(8):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            gradient_step(*next(rows)).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 8, "median_step_s": statistics.median(seconds[4:])}
