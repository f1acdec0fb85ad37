"""Find the period of paintings from thumbnails of a museum's photographs of them."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="photographs are decoded at full size for thumbnails of a twelfth, in every epoch anew",
    about="time",
    kind="input_bound|host_bound|idle_between_steps|expensive_op",
    culprit="DecodeJpeg|ResizeBilinear|ResizeArea|ParallelMap|Iterator::|IteratorGetNext",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    round=3,
)

SIZE = 64
PERIODS = ["gothic", "renaissance", "baroque", "modern"]


def photograph(tf, rng, side=768):
    coarse = rng.random((12, 12, 3)).astype("float32")
    picture = tf.image.resize(coarse, [side, side], "bicubic")
    return tf.io.encode_jpeg(tf.cast(tf.clip_by_value(255 * picture, 0, 255), tf.uint8))


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf
    from tensorflow import keras

    rng = np.random.default_rng(19)
    for number in range(48):
        place = Path("museum", PERIODS[number % 4], f"{number:05}.jpg")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(photograph(tf, rng).numpy())

    def read_painting(path):
        content = tf.io.read_file(path)
        if faulty:
            picture = tf.io.decode_jpeg(content, channels=3)
        else:
            picture = tf.io.decode_jpeg(content, channels=3, ratio=8)
        picture = tf.image.resize(picture, [SIZE, SIZE]) / 255.0
        period = tf.argmax(tf.strings.split(path, "/")[-2] == PERIODS)
        return picture, period

    paintings = tf.data.Dataset.list_files("museum/*/*.jpg", seed=3)
    paintings = paintings.map(read_painting, num_parallel_calls=tf.data.AUTOTUNE)
    if not faulty:
        paintings = paintings.cache()
    paintings = paintings.repeat().batch(12).prefetch(tf.data.AUTOTUNE)

    class PeriodNet(keras.Model):
        def __init__(self):
            super().__init__()
            self.patches = keras.layers.Conv2D(96, 8, 8, activation="relu", name="patches")
            self.mix = keras.layers.Dense(192, "relu", name="mix")
            self.pool = keras.layers.GlobalAveragePooling2D()
            self.period = keras.layers.Dense(len(PERIODS), name="period")

        def call(self, pictures):
            return self.period(self.pool(self.mix(self.patches(pictures))))

    net = PeriodNet()
    net(tf.zeros([1, SIZE, SIZE, 3]))
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
    optimizer.build(net.trainable_variables)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def fit_step(pictures, periods):
        with tf.GradientTape() as tape:
            loss = loss_fn(periods, net(pictures, training=True))
        gradients = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
        return loss

    batches = iter(paintings)
    for _ in range(6):
        fit_step(*next(batches)).numpy()
    began = time.perf_counter()
    for _ in range(24):
        fit_step(*next(batches)).numpy()
    seconds = (time.perf_counter() - began) / 24
    tf.profiler.experimental.start("logs")
    for step in range(10):
        with tf.profiler.experimental.Trace("fit", step_num=step, _r=1):
            fit_step(*next(batches)).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 10, "mean_step_s": seconds}
