"""Predict clicks with a factorisation machine over many fields; TensorFlow logs its memory."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

FIELDS, BUCKETS, FACTORS, BATCH = 40, 100, 16, 128

PAIR = Pair(
    fault="the products of all pairs of fields are made, rows x fields x fields x factors",
    about="memory",
    kind="huge_temporary",
    culprit="interactions|128,\\s*40,\\s*40",
    savings="temporary|recompute|batch",
    magnitude=BATCH * FIELDS * FIELDS * FACTORS * 4,
    tolerance=2.1,  # the products, and what the gradient makes of them
    environment={
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "TF_CPU_ALLOCATOR_USE_BFC": "1",
        "TF_CPP_VMODULE": "log_memory=2",
        "TF_CPP_MIN_LOG_LEVEL": "0",
    },
    is_held_out=True,
    round=2,
)


def second_order(tf, v):
    """The dot products of all pairs of fields, summed."""
    with tf.name_scope("interactions"):
        pairs = v[:, :, None, :] * v[:, None, :, :]
        upper = tf.linalg.band_part(tf.reduce_sum(pairs, -1), 0, -1)
        upper -= tf.linalg.diag(tf.linalg.diag_part(upper))
        return tf.reduce_sum(upper, [1, 2])


def second_order_by_sums(tf, v):
    """The same: half of the square of the sum less the sum of the squares."""
    with tf.name_scope("interactions"):
        of_sum = tf.square(tf.reduce_sum(v, 1))
        return 0.5 * tf.reduce_sum(of_sum - tf.reduce_sum(tf.square(v), 1), 1)


def record(folder: Path, *, faulty: bool) -> dict:
    # What `python train.py 2> memory.log` writes.
    terminal = os.dup(2)
    log = os.open(folder / "memory.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 2)
    import tensorflow as tf

    interactions = second_order if faulty else second_order_by_sums
    linear = tf.Variable(tf.zeros([FIELDS * BUCKETS]), name="linear")
    factors = tf.Variable(tf.random.normal([FIELDS * BUCKETS, FACTORS], stddev=0.1), name="factors")

    @tf.function
    def fit_batch(fields, clicked):
        with tf.GradientTape() as tape:
            logit = tf.reduce_sum(tf.gather(linear, fields), 1)
            logit += interactions(tf, tf.gather(factors, fields))
            loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logit)
            loss = tf.reduce_mean(loss)
        for table, slices in zip(
            (linear, factors), tape.gradient(loss, (linear, factors)), strict=True
        ):
            table.scatter_sub(tf.IndexedSlices(0.1 * slices.values, slices.indices))
        return loss

    fields = tf.random.uniform([BATCH, FIELDS], 0, BUCKETS, tf.int32)
    fields += tf.range(FIELDS) * BUCKETS
    clicked = tf.cast(tf.random.uniform([BATCH]) < 0.2, tf.float32)
    seconds = []
    for _ in range(10):
        begin = time.perf_counter()
        loss = fit_batch(fields, clicked)
        loss.numpy()
        seconds.append(time.perf_counter() - begin)
    os.dup2(terminal, 2)
    os.close(log)
    return {
        "steps": 10,
        "median_step_s": statistics.median(seconds[2:]),
        "pair_bytes": BATCH * FIELDS * FIELDS * FACTORS * 4 if faulty else 0,
    }
