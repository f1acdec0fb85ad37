"""Predict the height of waves at a mooring from records of its motion."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="next(iter(data)) in each step makes a new iterator, whose shuffle buffer fills anew",
    about="time",
    kind="input_bound|host_bound|idle_between_steps|expensive_op",
    culprit="Shuffle|MakeIterator|AnonymousIterator|DeleteIterator|Iterator::|IteratorGetNext",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    round=7,
)

RECORDS, LENGTH, BATCH = 8000, 256, 128


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf
    from tensorflow import keras

    motion = tf.random.normal([RECORDS, LENGTH])
    heights = tf.random.uniform([RECORDS])
    data = tf.data.Dataset.from_tensor_slices((motion, heights))
    data = data.shuffle(6000).repeat().batch(BATCH, drop_remainder=True).prefetch(2)
    batches = iter(data)

    model = keras.Sequential(
        [
            keras.layers.Input([LENGTH]),
            keras.layers.Dense(1024, "relu", name="motion"),
            keras.layers.Dense(640, "relu", name="waves"),
            keras.layers.Dense(1, name="height"),
        ]
    )
    variables = model.trainable_variables

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(model(x, training=True)[:, 0] - y))
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    seconds = []

    def train(steps):
        for step in range(steps):
            begin = time.perf_counter()
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                x, y = next(iter(data)) if faulty else next(batches)
                train_step(x, y).numpy()
            seconds.append(time.perf_counter() - begin)

    train(15)
    tf.profiler.experimental.start("logs")
    train(3)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 3, "median_step_s": statistics.median(seconds[5:15])}
