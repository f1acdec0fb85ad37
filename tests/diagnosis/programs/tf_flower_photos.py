"""Classify photos of flowers with Keras, from JPEG files of a small data set that fits memory."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="cache() stands before the map that decodes, so each epoch decodes all files again",
    about="time",
    kind="input_bound|host_bound|idle_between_steps|expensive_op",
    culprit="Decode|ScaleAndTranslate|Iterator::|IteratorGetNext|\\bMap",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    is_held_out=True,
    round=2,
)

PHOTOS, SIDE, BATCH = 160, 64, 16


def record(folder: Path, *, faulty: bool) -> dict:
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)

    def photo(index):
        coarse = tf.random.stateless_uniform([12, 12, 3], [index, 7], 0, 255)
        pixels = tf.cast(tf.image.resize(coarse, [640, 640], "bicubic"), tf.uint8)
        return tf.io.encode_jpeg(pixels).numpy()

    def decode_photo(jpeg, species):
        image = tf.image.decode_jpeg(jpeg, channels=3)
        return tf.image.resize(image, [SIDE, SIDE], antialias=True) / 255.0, species

    def flip(images, species):
        return tf.image.random_flip_left_right(images), species

    files, labels = [photo(index) for index in range(PHOTOS)], [i % 5 for i in range(PHOTOS)]
    dataset = tf.data.Dataset.from_tensor_slices((files, labels))
    dataset = dataset.cache().map(decode_photo) if faulty else dataset.map(decode_photo).cache()
    dataset = dataset.batch(BATCH).map(flip).prefetch(tf.data.AUTOTUNE)

    class BatchTimes(keras.callbacks.Callback):
        """Clock all batches, and profile those from one number to another."""

        def __init__(self, profile_batch):
            super().__init__()
            self.begins, self.profile_batch = [], profile_batch

        def on_train_batch_begin(self, batch, logs=None):  # noqa: ARG002
            if len(self.begins) == self.profile_batch[0]:
                tf.profiler.experimental.start("logs")
            self.begins.append(time.perf_counter())

        def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002
            if len(self.begins) == self.profile_batch[1]:
                tf.profiler.experimental.stop()

    model = keras.Sequential(
        [
            keras.Input([SIDE, SIDE, 3]),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu", name="stem"),
            keras.layers.Conv2D(32, 3, strides=2, activation="relu", name="body"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(5, name="species"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=["accuracy"], jit_compile=False)
    times = BatchTimes(profile_batch=(31, 39))
    model.fit(dataset, epochs=4, verbose=0, callbacks=[times])
    take_profile("logs", folder / "worker0.xplane.pb")
    gaps = [b - a for a, b in zip(times.begins[11:29], times.begins[12:30], strict=True)]
    return {"steps": 8, "median_step_s": statistics.median(gaps)}
