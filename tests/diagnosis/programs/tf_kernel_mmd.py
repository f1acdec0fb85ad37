"""Match two distributions: an encoder is trained on the kernel discrepancy (MMD) of its codes."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="pairwise distances are made by broadcasting rows against rows, with the features",
    about="memory",
    kind="huge_temporary|peak_in_one_step",
    culprit="pairwise|SquaredDifference|Sub",
    savings="temporary|recompute|batch",
    magnitude=192 * 192 * 48 * 4,
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    def pairwise_distances(x, y):
        with tf.name_scope("pairwise"):
            if faulty:
                return tf.reduce_sum(tf.math.squared_difference(x[:, None], y[None]), -1)
            squares = tf.reduce_sum(x * x, 1)[:, None] + tf.reduce_sum(y * y, 1)[None]
            return tf.maximum(squares - 2 * tf.matmul(x, y, transpose_b=True), 0.0)

    def mmd(x, y, bandwidths=(1.0, 4.0)):
        def kernel(a, b):
            distances = pairwise_distances(a, b)
            return tf.add_n([tf.reduce_mean(tf.exp(-distances / s)) for s in bandwidths])

        return kernel(x, x) + kernel(y, y) - 2 * kernel(x, y)

    encoder = tf.keras.Sequential([tf.keras.layers.Dense(96, "relu"), tf.keras.layers.Dense(48)])
    adam = tf.keras.optimizers.SGD(0.05)

    @tf.function
    def fit(source, target):
        with tf.GradientTape() as tape:
            loss = mmd(encoder(source), encoder(target))
        grads = tape.gradient(loss, encoder.trainable_variables)
        adam.apply_gradients(zip(grads, encoder.trainable_variables, strict=True))
        return loss

    source, target = tf.random.normal([192, 64]), tf.random.normal([192, 64], 1.0)
    seconds = []
    for _ in range(12):
        begin = time.perf_counter()
        fit(source, target).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(8):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            fit(source, target).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 8,
        "median_step_s": statistics.median(seconds[3:]),
        "pairs_bytes": 192 * 192 * 48 * 4 if faulty else 192 * 192 * 4,
    }
