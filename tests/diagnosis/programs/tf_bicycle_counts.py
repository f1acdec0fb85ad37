"""Predict the counts of bicycles on a bridge from the hours before."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="windows come one by one from a Python generator, which sums hours in a loop",
    about="time",
    kind="input_bound|host_bound|python_work|host_callback|idle_between_steps",
    culprit="Generator|PyFunc|FlatMap|Iterator|from_generator",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    round=6,
)

HOURS, LENGTH, BATCH = 5000, 168, 128


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf
    from tensorflow import keras

    rng = np.random.default_rng(8)
    counts = rng.random(HOURS, np.float32)

    def windows():
        """One window at a time: the hours, and the mean of each three of them."""
        while True:
            start = int(rng.integers(0, HOURS - LENGTH - 1))
            hours = [float(count) for count in counts[start : start + LENGTH]]
            means = [sum(hours[max(0, i - 2) : i + 1]) / 3 for i in range(LENGTH)]
            yield hours + means, counts[start + LENGTH]

    def batch_of_windows(_):
        starts = tf.random.uniform([BATCH, 1], 0, HOURS - LENGTH - 1, tf.int32)
        hours = tf.gather(tf.constant(counts), starts + tf.range(LENGTH + 1))
        x, y = hours[:, :-1], hours[:, -1]
        means = (x + tf.roll(x, 1, 1) + tf.roll(x, 2, 1)) / 3
        return tf.concat([x, means], axis=1), y

    if faulty:
        signature = (tf.TensorSpec([2 * LENGTH]), tf.TensorSpec([]))
        data = tf.data.Dataset.from_generator(windows, output_signature=signature)
        data = data.batch(BATCH)
    else:
        data = tf.data.Dataset.range(1).repeat().map(batch_of_windows).prefetch(2)

    model = keras.Sequential(
        [
            keras.layers.Input([2 * LENGTH]),
            keras.layers.Dense(1024, "relu", name="hours"),
            keras.layers.Dense(1024, "relu", name="bridge"),
            keras.layers.Dense(1, name="count"),
        ]
    )
    variables = model.trainable_variables
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(variables)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True)[:, 0] - y))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    seconds, batches = [], iter(data)

    def train(steps):
        for step in range(steps):
            begin = time.perf_counter()
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                train_step(*next(batches)).numpy()
            seconds.append(time.perf_counter() - begin)

    train(15)
    tf.profiler.experimental.start("logs")
    train(6)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 6, "median_step_s": statistics.median(seconds[5:15])}
