"""Predict which customers leave, with a rank metric beside the loss; TensorFlow 1."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the rank metric is a Python function that compares pairs in a loop, in each step",
    about="time",
    kind="host_callback|expensive_op|python_work|host_bound",
    culprit="PyFunc|rank_metric",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
)


def concordance(labels, scores):
    """The share of pairs, one that left and one that stayed, in the right order."""
    import numpy as np

    left, stayed = scores[labels > 0], scores[labels == 0]
    right = 0.0
    for score in left:
        for other in stayed:
            right += float(score > other)
    return np.float32(right / max(1, len(left) * len(stayed)))


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    x = tf.placeholder(tf.float32, [None, 40], name="customer")
    y = tf.placeholder(tf.float32, [None], name="left")
    hidden = x
    for index, (fan_in, fan_out) in enumerate(((40, 256), (256, 128))):
        with tf.variable_scope(f"dense{index}"):
            hidden = tf.nn.relu(tf.matmul(hidden, tf.get_variable("w", [fan_in, fan_out])))
    with tf.variable_scope("head"):
        score = tf.matmul(hidden, tf.get_variable("w", [128, 1]))[:, 0]
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=score))
    train_op = tf.train.AdamOptimizer().minimize(loss)
    with tf.name_scope("rank_metric"):
        if faulty:
            metric = tf.py_func(concordance, [y, score], tf.float32)
        else:
            above = tf.cast(score[:, None] > score[None], tf.float32)
            pairs = y[:, None] * (1.0 - y[None])
            metric = tf.reduce_sum(above * pairs) / tf.maximum(1.0, tf.reduce_sum(pairs))

    rng = np.random.default_rng(9)
    feed = {x: rng.normal(size=(256, 40)), y: rng.integers(0, 2, 256)}
    fetches = {"train": train_op, "loss": loss, "concordance": metric}
    seconds, run_metadata = [], tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(12):
            begin = time.perf_counter()
            sess.run(fetches, feed)
            seconds.append(time.perf_counter() - begin)
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(fetches, feed, options=full, run_metadata=run_metadata)
    (folder / "churn.run_metadata.pb").write_bytes(run_metadata.SerializeToString())
    return {"steps": 1, "median_step_s": statistics.median(seconds[3:])}
