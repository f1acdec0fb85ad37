"""Predict how many ride a tram, and describe the gradients of an epoch at its end."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

SIZES = (96, 512, 512, 1)

PAIR = Pair(
    fault="a dict holds the gradients of all layers of every step, for histograms at the end",
    about="memory",
    kind="leak",
    culprit="MatMul|gradient|grad",
    savings="older_copy|held|leak|release|offload",
    magnitude=4 * (96 * 512 + 512 * 512 + 512 + 512 + 512 + 1),
    tolerance=0.25,  # the small layer's gradient may be named alone
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf
    from tensorflow import keras

    model = keras.Sequential(
        [
            keras.layers.Input([SIZES[0]]),
            keras.layers.Dense(SIZES[1], "relu", name="stop"),
            keras.layers.Dense(SIZES[2], "relu", name="hour"),
            keras.layers.Dense(SIZES[3], name="riders"),
        ]
    )
    variables = model.trainable_variables
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(variables)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss, gradients if faulty else [tf.norm(gradient) for gradient in gradients]

    gradients_of = {variable.path: [] for variable in variables}
    seconds = []

    def train(steps):
        for step in range(steps):
            x, y = tf.random.normal([384, SIZES[0]]), tf.random.normal([384, 1])
            begin = time.perf_counter()
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                loss, gradients = train_step(x, y)
                for variable, gradient in zip(variables, gradients, strict=True):
                    gradients_of[variable.path].append(gradient)
                loss.numpy()
            seconds.append(time.perf_counter() - begin)

    train(6)
    tf.profiler.experimental.start("logs")
    train(10)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 10,
        "median_step_s": statistics.median(seconds[3:6]),
        "gradient_bytes": sum(variable.numpy().nbytes for variable in variables),
        "held_bytes": sum(
            tensor.numpy().nbytes for held in gradients_of.values() for tensor in held
        ),
    }
