"""Apply a learned filter bank to textures, in one TensorFlow 1 graph and a session."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="a convolution is written as patches of all pixels times a matrix",
    about="memory",
    kind="huge_temporary|peak_in_one_step",
    culprit="ExtractImagePatches|texture/filter/patches",
    savings="temporary|recompute|batch",
    magnitude=8 * 64 * 64 * 5 * 5 * 8 * 4,
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
)

KERNEL, CHANNELS = 5, 8


class TextureGraph:
    def __init__(self, tf, *, by_patches):
        self.tf = tf
        self.images = tf.placeholder(tf.float32, [8, 64, 64, CHANNELS], name="images")
        with tf.variable_scope("texture"):
            responses = self.filter(self.images, by_patches=by_patches)
            self.energy = tf.reduce_mean(tf.square(responses), [1, 2], name="energy")

    def filter(self, images, *, by_patches):
        tf = self.tf
        with tf.variable_scope("filter"):
            weights = tf.get_variable("weights", [KERNEL, KERNEL, CHANNELS, 12])
            if not by_patches:
                return tf.nn.conv2d(images, weights, [1, 1, 1, 1], "SAME")
            patches = tf.image.extract_patches(
                images, [1, KERNEL, KERNEL, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME", name="patches"
            )
            flat = tf.reshape(patches, [-1, KERNEL * KERNEL * CHANNELS])
            return tf.reshape(tf.matmul(flat, tf.reshape(weights, [-1, 12])), [8, 64, 64, 12])


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    graph = TextureGraph(tf, by_patches=faulty)
    feed = {graph.images: np.random.default_rng(0).normal(size=(8, 64, 64, CHANNELS))}
    seconds, metadata = [], tf.RunMetadata()
    with tf.train.MonitoredSession() as session:
        for _ in range(8):
            begin = time.perf_counter()
            session.run(graph.energy, feed)
            seconds.append(time.perf_counter() - begin)
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(graph.energy, feed, options=full, run_metadata=metadata)
    (folder / "texture.run_metadata.pb").write_bytes(metadata.SerializeToString())
    return {
        "steps": 1,
        "median_step_s": statistics.median(seconds[2:]),
        "patch_bytes": 8 * 64 * 64 * KERNEL * KERNEL * CHANNELS * 4 if faulty else 0,
    }
