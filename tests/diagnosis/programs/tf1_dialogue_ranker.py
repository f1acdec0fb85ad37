"""Rank replies to a dialogue: a small network scores each of many candidates with the context."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

DIALOGUES, CANDIDATES, WIDTH, HIDDEN = 24, 96, 192, 48

PAIR = Pair(
    fault="the context is tiled once for each candidate, and joined to it, before the first layer",
    about="memory",
    kind="huge_temporary|peak_in_one_step|redundant_copy|accumulated_in_step",
    culprit="Tile|concat|context_and_reply",
    savings="temporary|recompute|batch",
    magnitude=DIALOGUES * CANDIDATES * 2 * WIDTH * 4,
    tolerance=2.1,  # the joined one, or the tiled one and gradients with it
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    round=3,
)


def dense(tf, x, units, name):
    kernel = tf.get_variable(f"{name}/kernel", [x.shape[-1], units])
    return tf.tensordot(x, kernel, 1, name=f"{name}/product")


def first_layer_of_pairs(tf, context, replies):
    with tf.variable_scope("context_and_reply"):
        tiled = tf.tile(tf.expand_dims(context, 1), [1, CANDIDATES, 1])
        return dense(tf, tf.concat([tiled, replies], -1), HIDDEN, "both")


def first_layer_of_each(tf, context, replies):
    with tf.variable_scope("context_and_reply"):
        of_context = dense(tf, context, HIDDEN, "context")
        return tf.expand_dims(of_context, 1) + dense(tf, replies, HIDDEN, "reply")


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    context = tf.placeholder(tf.float32, [DIALOGUES, WIDTH], name="context")
    replies = tf.placeholder(tf.float32, [DIALOGUES, CANDIDATES, WIDTH], name="replies")
    chosen = tf.placeholder(tf.int32, [DIALOGUES], name="chosen")
    first_layer = first_layer_of_pairs if faulty else first_layer_of_each
    hidden = tf.nn.relu(first_layer(tf, context, replies), name="hidden")
    scores = tf.squeeze(dense(tf, hidden, 1, "score"), -1)
    loss = tf.losses.sparse_softmax_cross_entropy(chosen, scores)
    update = tf.train.AdagradOptimizer(0.05).minimize(loss)

    rng = np.random.default_rng(18)
    seconds, metadata = [], tf.RunMetadata()
    with tf.train.SingularMonitoredSession() as session:
        for number in range(10):
            feed = {
                context: rng.standard_normal((DIALOGUES, WIDTH)),
                replies: rng.standard_normal((DIALOGUES, CANDIDATES, WIDTH)),
                chosen: rng.integers(0, CANDIDATES, DIALOGUES),
            }
            options = None
            if number == 9:
                options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            begin = time.perf_counter()
            session.run(update, feed, options, metadata)
            seconds.append(time.perf_counter() - begin)
    (folder / "ranker.run_metadata.pb").write_bytes(metadata.SerializeToString())
    pairs = DIALOGUES * CANDIDATES * WIDTH * 4
    return {
        "steps": 1,
        "median_step_s": statistics.median(seconds[2:9]),
        "tiled_bytes": pairs if faulty else 0,
        "joined_bytes": 2 * pairs if faulty else 0,
    }
