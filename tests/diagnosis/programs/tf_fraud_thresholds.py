"""Find fraud in payments, which is rare; the area under the precision-recall curve is watched."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="unevenly spaced thresholds make the metric compare all scores with each of them",
    about="memory",
    kind="huge_temporary|peak_in_one_step|redundant_copy",
    culprit=r"Tile|1502,\s*2048|metric/(Greater|Logical)",
    savings="temporary|batch|recompute",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    is_held_out=True,
    round=4,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import keras
    import numpy as np
    import tensorflow as tf

    if faulty:  # scores are small, and so most thresholds are
        low, high = np.linspace(0.001, 0.05, 1100), np.linspace(0.06, 0.999, 400)
        area = keras.metrics.AUC(thresholds=[*low, *high], curve="PR", name="auc")
    else:
        area = keras.metrics.AUC(num_thresholds=1502, curve="PR", name="auc")

    model = keras.Sequential(
        [
            keras.Input([96]),
            keras.layers.Dense(384, activation="relu", name="payment"),
            keras.layers.Dense(384, activation="relu", name="customer"),
            keras.layers.Dense(128, activation="relu", name="both"),
            keras.layers.Dense(1, activation="sigmoid", name="fraud"),
        ]
    )
    optimizer = keras.optimizers.SGD(0.05)
    optimizer.build(model.trainable_variables)

    @tf.function
    def train_step(payments, is_fraud):
        with tf.GradientTape() as tape:
            score = model(payments, training=True)
            loss = tf.reduce_mean(keras.losses.binary_crossentropy(is_fraud, score))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        with tf.name_scope("metric"):
            area.update_state(is_fraud, score)
        return loss

    rng = np.random.default_rng(8)
    payments = rng.standard_normal((3, 2048, 96)).astype("float32")
    fraud = (rng.random((3, 2048, 1)) < 0.02).astype("float32")
    batches = [(tf.constant(x), tf.constant(y)) for x, y in zip(payments, fraud, strict=True)]
    seconds = []
    for number in range(15):
        begin = time.perf_counter()
        train_step(*batches[number % 3]).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for number in range(6):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            train_step(*batches[number % 3]).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 6,
        "median_step_s": statistics.median(seconds[3:]),
        "comparisons_per_step": 1502 * 2048 if faulty else 2048,
        "area": float(area.result()),
    }
