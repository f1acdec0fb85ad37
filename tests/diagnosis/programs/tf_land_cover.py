"""Classify the land cover of each pixel by its spectrum, and follow the mean IoU of the epoch."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the metric joins the class probabilities of all batches so far to one tensor, each step",
    about="memory",
    kind="leak",
    culprit="Concat",
    savings="older_copy|leak|release|offload",
    magnitude=8 * 64 * 64 * 8 * 4,
    tolerance=0.15,  # the labels, which are joined as well, are an eighth of that
    # While they are joined, the earlier ones are in memory twice.
    faulty_allowed=("held_after_use", "redundant_copy", "huge_temporary"),
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    is_held_out=True,
    round=2,
)

CLASSES, BANDS, SIDE, BATCH = 8, 32, 64, 8


class EpochIoU:
    """Mean intersection over union, from the probabilities of an epoch."""

    def __init__(self, tf):
        self.tf = tf
        self.y_true = tf.zeros([0, SIDE, SIDE], tf.int32)
        self.y_prob = tf.zeros([0, SIDE, SIDE, CLASSES])

    def update_state(self, y_true, y_prob):
        self.y_true = self.tf.concat([self.y_true, y_true], axis=0)
        self.y_prob = self.tf.concat([self.y_prob, y_prob], axis=0)

    def result(self):
        tf = self.tf
        labels, classes = tf.reshape(self.y_true, [-1]), tf.argmax(self.y_prob, -1)
        return iou(tf, tf.math.confusion_matrix(labels, tf.reshape(classes, [-1]), CLASSES))


class CountedIoU:
    """Mean intersection over union, from counts of pairs of classes."""

    def __init__(self, tf):
        self.tf = tf
        self.counts = tf.Variable(tf.zeros([CLASSES, CLASSES], tf.int32))
        self.update_state = tf.function(self.update_state)

    def update_state(self, y_true, y_prob):
        tf = self.tf
        labels, classes = tf.reshape(y_true, [-1]), tf.reshape(tf.argmax(y_prob, -1), [-1])
        self.counts.assign_add(tf.math.confusion_matrix(labels, classes, CLASSES))

    def result(self):
        return iou(self.tf, self.counts)


def iou(tf, counts):
    both = tf.linalg.diag_part(counts)
    either = tf.reduce_sum(counts, 0) + tf.reduce_sum(counts, 1) - both
    return float(tf.reduce_mean(both / tf.maximum(either, 1)))


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    dense = tf.keras.layers.Dense
    net = tf.keras.Sequential([dense(24, "relu"), dense(CLASSES)], name="spectrum")
    opt = tf.keras.optimizers.SGD(0.05)
    metric = EpochIoU(tf) if faulty else CountedIoU(tf)

    @tf.function
    def train_step(image, mask):
        with tf.GradientTape() as tape:
            logits = net(image, training=True)
            ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=mask, logits=logits)
            loss = tf.reduce_mean(ce)
        grads = tape.gradient(loss, net.trainable_variables)
        opt.apply_gradients(zip(grads, net.trainable_variables, strict=True))
        return loss, tf.nn.softmax(logits, name="probabilities")

    image = tf.random.normal([BATCH, SIDE, SIDE, BANDS])
    mask = tf.random.uniform([BATCH, SIDE, SIDE], 0, CLASSES, tf.int32)
    seconds = []
    for step in range(18):
        if step == 6:
            tf.profiler.experimental.start("logs")
        begin = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            loss, probabilities = train_step(image, mask)
            metric.update_state(mask, probabilities)
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 12,
        "median_step_s": statistics.median(seconds[2:6]),
        "loss": float(loss),
        "mean_iou": metric.result(),
        "probability_bytes_per_step": BATCH * SIDE * SIDE * CLASSES * 4 if faulty else 0,
    }
