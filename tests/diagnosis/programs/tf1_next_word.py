"""Predict the next word from the words before it, as a tutorial of TensorFlow 1 does."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

VOCABULARY, BATCH, CONTEXT, WIDTH = 12000, 200, 4, 32

PAIR = Pair(
    fault="the loss multiplies one-hot labels by the log of the softmax, all as long as the words",
    about="memory",
    kind="huge_temporary|peak_in_one_step|accumulated_in_step|redundant_copy",
    culprit="cross_entropy|one_hot|labels|probability",
    savings="temporary|recompute|batch",
    magnitude=BATCH * VOCABULARY * 4,
    tolerance=5.1,  # one matrix or all of them
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    is_held_out=True,
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    words = tf.placeholder(tf.int32, [BATCH, CONTEXT], name="words")
    following = tf.placeholder(tf.int32, [BATCH], name="following")
    table = tf.get_variable("embeddings", [VOCABULARY, WIDTH])
    context = tf.reshape(tf.nn.embedding_lookup(table, words), [BATCH, CONTEXT * WIDTH])
    w1 = tf.get_variable("w1", [CONTEXT * WIDTH, WIDTH])
    hidden = tf.nn.tanh(tf.matmul(context, w1), name="hidden")
    w2, b2 = tf.get_variable("w2", [WIDTH, VOCABULARY]), tf.get_variable("b2", [VOCABULARY])
    y = tf.add(tf.matmul(hidden, w2), b2, name="scores")
    if faulty:
        y_ = tf.one_hot(following, VOCABULARY, name="labels")
        probability = tf.nn.softmax(y, name="probability")
        with tf.name_scope("cross_entropy"):
            cross_entropy = -tf.reduce_sum(y_ * tf.log(probability + 1e-10), axis=[1])
    else:
        cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=following, logits=y, name="cross_entropy"
        )
    train_step = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_mean(cross_entropy))

    rng = np.random.default_rng(12)
    seconds, run_metadata = [], tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(8):
            feed_dict = {
                words: rng.integers(0, VOCABULARY, (BATCH, CONTEXT)),
                following: rng.integers(0, VOCABULARY, BATCH),
            }
            if step == 7:
                options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
                sess.run(train_step, feed_dict, options, run_metadata)
                continue
            begin = time.perf_counter()
            sess.run(train_step, feed_dict)
            seconds.append(time.perf_counter() - begin)
    (folder / "words.run_metadata.pb").write_bytes(run_metadata.SerializeToString())
    return {
        "steps": 1,
        "median_step_s": statistics.median(seconds[2:]),
        "matrix_bytes": BATCH * VOCABULARY * 4,
    }
