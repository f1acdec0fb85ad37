"""Find faulty machines from sensors whose readings are whitened, in TensorFlow 1."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each step whitens its batch by the eigenvectors of the covariance of all sensors",
    about="time",
    kind="expensive_op|host_bound|straggler",
    culprit="SelfAdjointEig|prepare/eig",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    round=6,
)

BATCH, SENSORS = 512, 320


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    readings = tf.placeholder(tf.float32, [BATCH, SENSORS], name="readings")
    broken = tf.placeholder(tf.float32, [BATCH, 1], name="broken")
    with tf.name_scope("prepare"):
        mean, variance = tf.nn.moments(readings, axes=[0])
        x = readings - mean
        if faulty:
            covariance = tf.matmul(x, x, transpose_a=True) / BATCH
            values, vectors = tf.linalg.eigh(covariance, name="eig")
            x = tf.matmul(x, vectors) * tf.rsqrt(values + 1e-3)
        else:
            x = x * tf.rsqrt(variance + 1e-3)
    for number, width in enumerate((512, 512)):
        w = tf.get_variable(f"w{number}", [x.shape[1], width])
        x = tf.nn.relu(tf.matmul(x, w), name=f"layer{number}")
    logits = tf.matmul(x, tf.get_variable("w_out", [512, 1]), name="logits")
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=broken, logits=logits))
    train_op = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)

    rng = np.random.default_rng(4)
    seconds, run_metadata = [], tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(13):
            feed_dict = {
                readings: rng.standard_normal((BATCH, SENSORS), np.float32),
                broken: rng.integers(0, 2, (BATCH, 1)),
            }
            if step == 12:
                options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
                sess.run([train_op, loss], feed_dict, options, run_metadata)
                continue
            begin = time.perf_counter()
            sess.run([train_op, loss], feed_dict)
            seconds.append(time.perf_counter() - begin)
    (folder / "sensors.run_metadata.pb").write_bytes(run_metadata.SerializeToString())
    return {"steps": 1, "median_step_s": statistics.median(seconds[3:])}
