"""Score ads for queries, in the style of TensorFlow 1: placeholders, a session, FULL_TRACE."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="embeddings are taken by a one-hot matrix times the table",
    about="memory",
    kind="huge_temporary|peak_in_one_step",
    culprit="one_hot|OneHot|query_embedding",
    savings="temporary",
    magnitude=512 * 12000 * 4,
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "2"},
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    vocabulary, width, batch = 12000, 32, 512
    query = tf.placeholder(tf.int32, [None], name="query")
    features = tf.placeholder(tf.float32, [None, 16], name="features")
    clicked = tf.placeholder(tf.float32, [None], name="clicked")
    with tf.variable_scope("query_embedding"):
        table = tf.get_variable("table", [vocabulary, width])
        if faulty:
            embedded = tf.matmul(tf.one_hot(query, vocabulary), table)
        else:
            embedded = tf.nn.embedding_lookup(table, query)
    with tf.variable_scope("mlp"):
        w1 = tf.get_variable("w1", [width + 16, 64])
        w2 = tf.get_variable("w2", [64, 1])
        hidden = tf.nn.relu(tf.matmul(tf.concat([embedded, features], 1), w1))
        logit = tf.squeeze(tf.matmul(hidden, w2), 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logit))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    rng = np.random.default_rng(6)
    feed = {
        query: rng.integers(0, vocabulary, batch),
        features: rng.normal(size=(batch, 16)),
        clicked: rng.integers(0, 2, batch),
    }
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        seconds = []
        for _ in range(10):
            begin = time.perf_counter()
            sess.run([train_op, loss], feed)
            seconds.append(time.perf_counter() - begin)
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        metadata = tf.RunMetadata()
        sess.run([train_op, loss], feed, options=options, run_metadata=metadata)
    (folder / "ads.run_metadata.pb").write_bytes(metadata.SerializeToString())
    return {
        "steps": 1,
        "median_step_s": statistics.median(seconds[2:]),
        "one_hot_bytes": batch * vocabulary * 4 if faulty else 0,
    }
