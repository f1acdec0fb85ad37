"""Segment satellite tiles that are stored channels first; blocks of 1x1 and depthwise filters."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each block turns its tensors from channels first to channels last and back",
    about="time",
    kind="expensive_op|time_in_copies",
    culprit="Transpose|to_channels",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
)


def build_network(tf, tiles, blocks, *, channels_first):
    def to_channels_last(x):
        return tf.transpose(x, [0, 2, 3, 1], name="to_channels_last")

    def to_channels_first(x):
        return tf.transpose(x, [0, 3, 1, 2], name="to_channels_first")

    def block(x, index):
        with tf.variable_scope(f"block{index}"):
            kernel = tf.get_variable("kernel", [3, 3, 24, 1])
            if channels_first:
                x = to_channels_last(x)
            y = tf.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], "SAME")
            if channels_first:
                y = to_channels_first(y)
                x = to_channels_first(x)
            return tf.nn.relu(x + y)

    x = tiles if channels_first else to_channels_last(tiles)
    for index in range(blocks):
        x = block(x, index)
    return tf.reduce_mean(x, [2, 3] if channels_first else [1, 2])


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    tiles = tf.placeholder(tf.float32, [8, 24, 64, 64], name="tiles")
    cover = tf.placeholder(tf.float32, [8, 24], name="cover")
    pooled = build_network(tf, tiles, blocks=4, channels_first=faulty)
    loss = tf.reduce_mean(tf.square(pooled - cover))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    # The graph runs as it is written.
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.layout_optimizer = 2
    config.graph_options.rewrite_options.arithmetic_optimization = 2
    rng = np.random.default_rng(0)
    feed = {tiles: rng.normal(size=(8, 24, 64, 64)), cover: rng.random((8, 24))}
    seconds = []
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(12):
            begin = time.perf_counter()
            sess.run(train, feed)
            seconds.append(time.perf_counter() - begin)
        run_metadata = tf.RunMetadata()
        sess.run(train, feed, tf.RunOptions(trace_level=3), run_metadata)
    (folder / "tiles.run_metadata.pb").write_bytes(run_metadata.SerializeToString())
    return {"steps": 1, "median_step_s": statistics.median(seconds[3:])}
