"""Classify small images with a CNN; the pictures are augmented by random erasing."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="a NumPy function with a loop over pixels augments each image, one after another",
    about="time",
    kind="input_bound|host_callback|python_work",
    culprit="random_erase|numpy_?function|PyFunc|Map",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
)

SIZE, HOLE = 32, 14


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    images = rng.random((512, SIZE, SIZE, 3), dtype=np.float32)
    labels = rng.integers(0, 10, 512)

    def random_erase(image):
        top, left = rng.integers(0, SIZE - HOLE, 2)
        erased = image.copy()
        for row in range(top, top + HOLE):
            for column in range(left, left + HOLE):
                erased[row, column] = rng.random(3)
        return erased

    def augment(image, label):
        if faulty:
            erased = tf.numpy_function(random_erase, [image], tf.float32)
            return tf.ensure_shape(erased, [SIZE, SIZE, 3]), label
        corner = tf.random.uniform([2], 0, SIZE - HOLE, tf.int32)
        offset = tf.stack(tf.meshgrid(tf.range(SIZE), tf.range(SIZE), indexing="ij"), -1) - corner
        hole = tf.reduce_all((offset >= 0) & (offset < HOLE), -1, keepdims=True)
        return tf.where(hole, tf.random.uniform([SIZE, SIZE, 3]), image), label

    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(512).repeat()
    if faulty:
        dataset = dataset.map(augment).batch(32)
    else:
        dataset = dataset.map(augment, tf.data.AUTOTUNE).batch(32).prefetch(4)

    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(16, 4, strides=4, activation="relu", name="patches"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(10, name="head"),
        ]
    )
    optimizer = tf.keras.optimizers.SGD(0.1)
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_on_batch(image, label):
        with tf.GradientTape() as tape:
            loss = cross_entropy(label, model(image, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    iterator = iter(dataset)
    seconds = []
    for _ in range(20):
        begin = time.perf_counter()
        train_on_batch(*next(iterator)).numpy()
        seconds.append(time.perf_counter() - begin)
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)
    with tf.profiler.experimental.Profile("logs", options):
        for step in range(8):
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                train_on_batch(*next(iterator)).numpy()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 8, "median_step_s": statistics.median(seconds[4:])}
