"""Metric learning with the hardest negatives of a batch of embeddings."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="all similarities of each anchor are sorted where only the highest is used",
    about="time",
    kind="expensive_op",
    culprit="TopKV2|hard_negatives/sort",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    class EmbeddingNet(tf.Module):
        def __init__(self, features, width, name=None):
            super().__init__(name=name)
            self.projection = tf.Variable(tf.random.normal([features, width], stddev=0.05))

        @tf.Module.with_name_scope
        def __call__(self, x):
            return tf.math.l2_normalize(tf.matmul(x, self.projection), -1)

    class TripletLoss:
        """Hinge loss over the hardest negative of each anchor."""

        def __init__(self, margin=0.2, hardest=1):
            self.margin, self.hardest = margin, hardest

        def hard_negatives(self, scores):
            with tf.name_scope("hard_negatives"):
                if faulty:
                    ranked = tf.sort(scores, axis=-1, direction="DESCENDING")
                    return ranked[:, : self.hardest]
                return tf.reduce_max(scores, axis=-1, keepdims=True)

        def __call__(self, anchors, positives):
            scores = tf.matmul(anchors, positives, transpose_b=True)
            positive = tf.linalg.diag_part(scores)[:, None]
            others = tf.linalg.set_diag(scores, tf.fill(tf.shape(scores)[:1], -1.0))
            gap = self.margin + self.hard_negatives(others) - positive
            return tf.reduce_mean(tf.nn.relu(gap))

    net, triplet_loss = EmbeddingNet(256, 64, name="embedding_net"), TripletLoss()

    @tf.function
    def optimise(first, second):
        with tf.GradientTape() as tape:
            loss = triplet_loss(net(first), net(second))
        net.projection.assign_sub(0.5 * tape.gradient(loss, net.projection))
        return loss

    views = [tf.random.normal([384, 256]) for _ in range(2)]
    seconds = []
    for _ in range(25):
        begin = time.perf_counter()
        optimise(*views).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(12):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            optimise(*views).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 12, "median_step_s": statistics.median(seconds[5:])}
