"""Remove noise from pictures of digits with a small U-shaped network, in a custom loop."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="tf.print writes all pixels of input and output, and not a mean, in each step",
    about="time",
    kind="expensive_op|host_bound",
    culprit="StringFormat|PrintV2|debug",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    round=3,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf
    from tensorflow import keras

    def build_unet():
        noisy = keras.Input([32, 32, 1])
        wide = keras.layers.Conv2D(6, 3, padding="same", activation="relu", name="down1")(noisy)
        x = keras.layers.Conv2D(12, 3, 2, padding="same", activation="relu", name="down2")(wide)
        x = keras.layers.Conv2D(12, 3, padding="same", activation="relu", name="middle")(x)
        x = keras.layers.UpSampling2D()(x)
        x = keras.layers.Concatenate()([x, wide])
        clean = keras.layers.Conv2D(1, 1, activation="sigmoid", name="pixels")(x)
        return keras.Model(noisy, clean)

    rng = np.random.default_rng(41)
    digits = rng.random((512, 32, 32, 1), np.float32)
    dataset = (
        tf.data.Dataset.from_tensor_slices(digits)
        .repeat()
        .shuffle(256)
        .batch(32, drop_remainder=True)
        .prefetch(tf.data.AUTOTUNE)
    )
    unet = build_unet()
    adam = keras.optimizers.Adam(1e-3)
    adam.build(unet.trainable_variables)

    @tf.function
    def denoise_step(clean, step):
        noisy = clean + 0.2 * tf.random.normal(tf.shape(clean))
        with tf.GradientTape() as tape:
            output = unet(noisy, training=True)
            loss = tf.reduce_mean(tf.square(output - clean))
        with tf.name_scope("debug"):
            if faulty:
                tf.print(
                    "step", step, "noisy", noisy, "output", output, summarize=-1, output_stream=LOG
                )
            else:
                tf.print("step", step, "output", tf.reduce_mean(output), output_stream=LOG)
        gradients = tape.gradient(loss, unet.trainable_variables)
        adam.apply_gradients(zip(gradients, unet.trainable_variables, strict=True))
        return loss

    LOG = "file://denoiser.log"  # noqa: N806
    batches = iter(dataset)
    seconds = []
    for step in range(24):
        if step == 16:
            tf.profiler.experimental.start("logs")
        begin = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            denoise_step(next(batches), tf.constant(step))
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 8,
        "median_step_s": statistics.median(seconds[4:16]),
        "printed_bytes": Path("denoiser.log").stat().st_size,
    }
