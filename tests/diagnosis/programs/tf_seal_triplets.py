"""Learn vectors of seals, so that photos of the same seal are near to each other."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PHOTOS, PIXELS, WIDTH, SEALS = 160, 1024, 512, 20

PAIR = Pair(
    fault="the loss is of all triplets of a batch: photos x photos x photos, most of them masked",
    about="memory",
    kind="huge_temporary|peak_in_one_step|accumulated_in_step",
    culprit=r"triplet|160,\s*160,\s*160",
    savings="temporary|recompute|batch|precision",
    magnitude=PHOTOS**3 * 4,
    tolerance=7.1,  # one of them or all
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    first = tf.Variable(tf.random.normal([PIXELS, 1024], stddev=0.03), name="first")
    second = tf.Variable(tf.random.normal([1024, WIDTH], stddev=0.03), name="second")
    weights = [first, second]

    def all_triplets(far, same):
        """For all anchors, positives and negatives."""
        loss = far[:, :, None] - far[:, None, :] + 0.2
        mask = tf.logical_and(same[:, :, None], tf.logical_not(same)[:, None, :])
        loss = tf.nn.relu(loss * tf.cast(mask, tf.float32))
        return tf.reduce_sum(loss) / (tf.reduce_sum(tf.cast(loss > 0, tf.float32)) + 1e-6)

    def hardest_triplets(far, same):
        """For each anchor its farthest positive and its nearest negative."""
        same = tf.cast(same, tf.float32)
        positive = tf.reduce_max(far * same, axis=1)
        negative = tf.reduce_min(far + 10.0 * same, axis=1)
        return tf.reduce_mean(tf.nn.relu(positive - negative + 0.2))

    @tf.function
    def train_step(photos, seals):
        with tf.GradientTape() as tape:
            vectors = tf.matmul(tf.nn.relu(tf.matmul(photos, first)), second)
            vectors = tf.math.l2_normalize(vectors, axis=1)
            far = 1.0 - tf.matmul(vectors, vectors, transpose_b=True)
            same = tf.equal(seals[:, None], seals)
            with tf.name_scope("triplet_loss"):
                loss = all_triplets(far, same) if faulty else hardest_triplets(far, same)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.05 * gradient)
        return loss

    def batch():
        photos = tf.random.uniform([PHOTOS, PIXELS])
        return photos, tf.random.uniform([PHOTOS], 0, SEALS, tf.int32)

    seconds = []
    for _ in range(12):
        photos, seals = batch()
        begin = time.perf_counter()
        train_step(photos, seals).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(6):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(*batch()).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 6,
        "median_step_s": statistics.median(seconds[3:]),
        "weight_bytes": 4 * 1024 * (PIXELS + WIDTH),
        "triplet_bytes": PHOTOS**3 * 4 if faulty else 0,
    }
