"""Grade the stain of microscope slides from pixels and their histogram, in TensorFlow 1."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

SLIDES, PIXELS, LEVELS, GRADES = 32, 2048, 256, 4

PAIR = Pair(
    fault="the histogram of a slide is made by comparing each of its pixels with all 256 levels",
    about="memory",
    kind="huge_temporary|peak_in_one_step|accumulated_in_step",
    culprit=r"histogram",
    savings="temporary|recompute|batch|precision",
    magnitude=SLIDES * PIXELS * LEVELS * 4,
    tolerance=0.3,  # with the booleans or without
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    pixels = tf.placeholder(tf.int32, [SLIDES, PIXELS], name="pixels")
    grades = tf.placeholder(tf.int32, [SLIDES], name="grades")
    with tf.name_scope("histogram"):
        if faulty:
            is_level = tf.equal(pixels[:, :, None], tf.range(LEVELS))
            counts = tf.reduce_sum(tf.cast(is_level, tf.float32), axis=1)
        else:
            places = tf.reshape(pixels + LEVELS * tf.range(SLIDES)[:, None], [-1])
            ones = tf.ones([SLIDES * PIXELS])
            counts = tf.math.unsorted_segment_sum(ones, places, SLIDES * LEVELS)
            counts = tf.reshape(counts, [SLIDES, LEVELS])
    x = tf.concat([tf.cast(pixels, tf.float32) / 255, counts / PIXELS], axis=1)
    w1 = tf.get_variable("w1", [PIXELS + LEVELS, 1024])
    w2 = tf.get_variable("w2", [1024, 512])
    w3 = tf.get_variable("w3", [512, GRADES])
    hidden = tf.nn.relu(tf.matmul(x, w1), name="hidden")
    hidden = tf.nn.relu(tf.matmul(hidden, w2), name="hidden2")
    scores = tf.matmul(hidden, w3, name="scores")
    loss = tf.losses.sparse_softmax_cross_entropy(grades, scores)
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss)

    rng = np.random.default_rng(4)
    seconds, run_metadata = [], tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(10):
            feed_dict = {
                pixels: rng.integers(0, LEVELS, (SLIDES, PIXELS)),
                grades: rng.integers(0, GRADES, SLIDES),
            }
            if step == 9:
                options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
                sess.run(train_op, feed_dict, options, run_metadata)
                continue
            begin = time.perf_counter()
            sess.run(train_op, feed_dict)
            seconds.append(time.perf_counter() - begin)
    (folder / "slides.run_metadata.pb").write_bytes(run_metadata.SerializeToString())
    return {
        "steps": 1,
        "median_step_s": statistics.median(seconds[2:]),
        "weight_bytes": 4 * (1024 * (PIXELS + LEVELS + 512) + 512 * GRADES),
        "comparison_bytes": SLIDES * PIXELS * LEVELS * 4 if faulty else 0,
    }
