"""Logistic regression on gene expression: load, scale, then train on random batches."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the whole table is scaled in one go before the first step, with several copies of it",
    about="memory",
    kind="peak_outside_steps|huge_temporary",
    culprit="scale|standardi[sz]e|expression|Sub|RealDiv|SquaredDifference|Log1p",
    savings="temporary|batch|offload",
    magnitude=3000 * 800 * 4,
    tolerance=3.1,  # one copy of the table, or the few that are live at once
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    is_held_out=False,
)

SAMPLES, GENES, CLASSES = 3000, 800, 6


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    expression = rng.gamma(1.0, 20.0, (SAMPLES, GENES)).astype(np.float32)
    tissue = rng.integers(0, CLASSES, SAMPLES)

    def scale(counts, mean=None, deviation=None):
        logs = tf.math.log1p(counts)
        if mean is None:
            mean, variance = tf.nn.moments(logs, 0)
            deviation = tf.sqrt(variance)
        return (logs - mean) / deviation

    def batches():
        while True:
            chosen = rng.integers(0, SAMPLES, 128)
            yield expression[chosen], tissue[chosen]

    tf.profiler.experimental.start("logs")
    weights = tf.Variable(tf.zeros([GENES, CLASSES]), name="weights")

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, tf.matmul(x, weights))
            loss = tf.reduce_mean(losses)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    if faulty:
        table = scale(tf.constant(expression))
    else:
        sample = np.log1p(expression[:512])
        mean, deviation = sample.mean(0), sample.std(0)
    seconds, data = [], batches()
    for step in range(12):
        begin = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            if faulty:
                chosen = tf.random.uniform([128], 0, SAMPLES, tf.int32)
                loss = train_step(tf.gather(table, chosen), tf.gather(tissue, chosen))
            else:
                counts, label = next(data)
                loss = train_step(scale(counts, mean, deviation), label)
            loss.numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 12,
        "median_step_s": statistics.median(seconds[2:]),
        "table_bytes": expression.nbytes,
    }
