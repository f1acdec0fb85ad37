"""Read house numbers from glimpses of photos, with a graph and a session of TensorFlow 1."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="glimpses are cut by map_fn, one photo at a time, in a loop of small ops",
    about="time",
    kind="tiny_ops|host_bound|launch_bound|unfused_elementwise|expensive_op",
    culprit="glimpse|map/while|TensorArray|map_fn",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    is_held_out=True,
    round=2,
)

SIDE, PATCH, PHOTOS = 48, 16, 80


def glimpse_one(tf, args):
    """One patch around a centre, whose coordinates are shares of the photo."""
    photo, centre = args
    with tf.name_scope("cut"):
        corner = tf.cast(centre * (SIDE - PATCH), tf.int32)
        corner = tf.clip_by_value(corner, 0, SIDE - PATCH)
        patch = tf.slice(photo, [corner[0], corner[1], 0], [PATCH, PATCH, 3])
        return (patch - tf.reduce_mean(patch)) * 2.0


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    photos = tf.placeholder(tf.float32, [PHOTOS, SIDE, SIDE, 3], name="photos")
    centres = tf.placeholder(tf.float32, [PHOTOS, 2], name="centres")
    digits = tf.placeholder(tf.int32, [PHOTOS], name="digits")
    with tf.name_scope("glimpse"):
        if faulty:
            patches = tf.map_fn(
                lambda args: glimpse_one(tf, args), (photos, centres), dtype=tf.float32
            )
            patches.set_shape([PHOTOS, PATCH, PATCH, 3])
        else:
            corner = centres * (SIDE - PATCH) / (SIDE - 1.0)
            boxes = tf.concat([corner, corner + (PATCH - 1.0) / (SIDE - 1.0)], 1)
            size = [PATCH, PATCH]
            patches = tf.image.crop_and_resize(photos, boxes, tf.range(PHOTOS), size)
            patches = (patches - tf.reduce_mean(patches, [1, 2, 3], keepdims=True)) * 2.0
    hidden = tf.reshape(patches, [PHOTOS, PATCH * PATCH * 3])
    for index, (fan_in, fan_out) in enumerate(((768, 256), (256, 10))):
        with tf.variable_scope(f"dense{index}"):
            hidden = tf.matmul(hidden, tf.get_variable("w", [fan_in, fan_out]))
            hidden = tf.nn.relu(hidden) if index == 0 else hidden
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=digits, logits=hidden)
    )
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    rng = np.random.default_rng(5)
    feed = {
        photos: rng.random((PHOTOS, SIDE, SIDE, 3), np.float32),
        centres: rng.random((PHOTOS, 2), np.float32),
        digits: rng.integers(0, 10, PHOTOS),
    }
    seconds, run_metadata = [], tf.RunMetadata()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(20):
            begin = time.perf_counter()
            sess.run([train_op, loss], feed)
            seconds.append(time.perf_counter() - begin)
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run([train_op, loss], feed, options=full, run_metadata=run_metadata)
    (folder / "digits.run_metadata.pb").write_bytes(run_metadata.SerializeToString())
    return {"steps": 1, "median_step_s": statistics.median(seconds[4:])}
