"""Name insects by the features of their sounds, and measure how well each class is found."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the recall of each class is made by eager ops with .numpy() in a loop, in every step",
    about="time",
    kind="host_sync|host_bound|tiny_ops|launch_bound|idle_between_steps|python_work",
    culprit=r"\b(Equal|LogicalAnd|Cast|Sum)\b|FastPathExecute",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    round=5,
)

SOUNDS, FEATURES, WIDTH, CLASSES = 256, 320, 512, 40


def class_recalls(tf, labels, logits):
    """Which share of each class was found."""
    result = tf.argmax(logits, 1, tf.int32)
    recalls = []
    for number in range(CLASSES):
        is_class = labels == number
        right = tf.reduce_sum(tf.cast(is_class & (result == number), tf.float32)).numpy()
        total = tf.reduce_sum(tf.cast(is_class, tf.float32)).numpy()
        recalls.append(right / max(total, 1.0))
    return recalls


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(21)
    sizes = [FEATURES, WIDTH, WIDTH, CLASSES]
    kernels = [
        tf.Variable(tf.random.normal([sizes[i], sizes[i + 1]], stddev=sizes[i] ** -0.5))
        for i in range(3)
    ]

    @tf.function
    def train_step(sounds, labels):
        with tf.GradientTape() as tape:
            x = sounds
            for kernel in kernels[:-1]:
                x = tf.nn.relu(tf.matmul(x, kernel))
            logits = tf.matmul(x, kernels[-1])
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = tf.reduce_mean(loss)
        for kernel, gradient in zip(kernels, tape.gradient(loss, kernels), strict=True):
            kernel.assign_sub(0.1 * gradient)
        result = tf.argmax(logits, 1, tf.int32)
        table = tf.math.confusion_matrix(labels, result, CLASSES, dtype=tf.float32)
        return loss, logits, table

    def run_step(step):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            loss, logits, table = train_step(sounds, labels)
            if faulty:
                recalls = class_recalls(tf, labels, logits)
            else:
                table = table.numpy()
                recalls = np.diag(table) / np.maximum(table.sum(1), 1.0)
            return loss.numpy(), recalls

    sounds = tf.constant(rng.standard_normal((SOUNDS, FEATURES)).astype("float32"))
    labels = tf.constant(rng.integers(0, CLASSES, SOUNDS, dtype="int32"))
    seconds = []
    for step in range(25):
        begin = time.perf_counter()
        run_step(step)
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(4):
        run_step(step)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 4,
        "median_step_s": statistics.median(seconds[5:]),
        "reads": 2 * CLASSES + 1 if faulty else 2,
    }
