"""Find the kind of rain in small radar pictures, which have noise."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="each step removes the noise of its pictures by a median, which sorts 25 for each pixel",
    about="time",
    kind="expensive_op|host_bound",
    culprit=r"denoise|TopK|\bsort|extract_patches|ExtractImagePatches",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    round=7,
)

PICTURES, SIDE, BATCH, KINDS = 64, 40, 16, 5


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf
    from tensorflow import keras

    def denoise(pictures):
        """The median of the 5 x 5 pixels around each."""
        around = tf.image.extract_patches(
            pictures, [1, 5, 5, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"
        )
        return tf.sort(around, axis=-1)[..., 12:13]

    pictures = tf.random.uniform([PICTURES, SIDE, SIDE, 1])
    kinds = tf.random.uniform([PICTURES], 0, KINDS, tf.int32)
    if not faulty:
        pictures = denoise(pictures)

    model = keras.Sequential(
        [
            keras.layers.Input([SIDE, SIDE, 1]),
            keras.layers.Conv2D(16, 5, 2, activation="relu", name="echo"),
            keras.layers.Flatten(),
            keras.layers.Dense(384, "relu", name="cells"),
            keras.layers.Dense(KINDS, name="kind"),
        ]
    )
    variables = model.trainable_variables
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(x, y):
        if faulty:
            with tf.name_scope("denoise"):
                x = denoise(x)
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    data = tf.data.Dataset.from_tensor_slices((pictures, kinds))
    data = iter(data.repeat().batch(BATCH, drop_remainder=True).prefetch(2))
    seconds = []

    def train(steps):
        for step in range(steps):
            begin = time.perf_counter()
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                train_step(*next(data)).numpy()
            seconds.append(time.perf_counter() - begin)

    train(15)
    tf.profiler.experimental.start("logs")
    train(6)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 6, "median_step_s": statistics.median(seconds[5:15])}
