"""Forecast the sales of bakeries, from the days of many years."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="each step shuffles the whole table of days to take the first rows as its batch",
    about="time",
    kind="expensive_op|host_bound|time_in_copies|idle_between_steps",
    culprit="[Ss]huffle|sample",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    round=6,
)

BATCH, DAYS, COLUMNS = 384, 120_000, 48


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf
    from tensorflow import keras

    table = tf.random.normal([DAYS, COLUMNS + 1])
    model = keras.Sequential(
        [
            keras.layers.Input([COLUMNS]),
            keras.layers.Dense(512, "relu", name="week"),
            keras.layers.Dense(512, "relu", name="season"),
            keras.layers.Dense(1, name="sales"),
        ]
    )
    variables = model.trainable_variables
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(variables)

    def sample():
        """The rows of a batch, in any order."""
        with tf.name_scope("sample"):
            if faulty:
                return tf.random.shuffle(table)[:BATCH]
            return tf.gather(table, tf.random.uniform([BATCH], 0, DAYS, tf.int32))

    @tf.function
    def train_step():
        rows = sample()
        with tf.GradientTape() as tape:
            sales = model(rows[:, :-1], training=True)
            loss = tf.reduce_mean(tf.abs(sales - rows[:, -1:]))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    seconds = []

    def train(steps):
        for step in range(steps):
            begin = time.perf_counter()
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                train_step().numpy()
            seconds.append(time.perf_counter() - begin)

    train(20)
    tf.profiler.experimental.start("logs")
    train(5)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 5, "median_step_s": statistics.median(seconds[5:20])}
