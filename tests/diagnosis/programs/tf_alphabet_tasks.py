"""Learn to learn letters of new alphabets from few examples, with first-order MAML."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the gradients of all tasks of a meta-batch are in a list, and averaged at its end",
    about="memory",
    kind="accumulated_in_step|redundant_copy|held_after_use|huge_temporary|peak_in_one_step",
    culprit=r"matmul_[34]/MatMul",
    savings="temporary|recompute|held|older_copy|accum|duplicate",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    is_held_out=True,
    round=4,
)

TASKS, LETTERS, SHOTS = 10, 5, 16


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(20)

    def variable(*shape):
        return tf.Variable((rng.standard_normal(shape) / shape[0] ** 0.5).astype("float32"))

    theta = [variable(784, 512), variable(512, 512), variable(512, LETTERS)]
    sums = [tf.Variable(tf.zeros_like(one), trainable=False) for one in theta]

    def loss_of(weights, letters, labels):
        x = letters
        for weight in weights[:-1]:
            x = tf.nn.relu(x @ weight)
        logits = x @ weights[-1]
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    @tf.function
    def task_gradients(letters, labels):
        """The slope of the query loss where one step on the support set leads."""
        with tf.GradientTape() as tape:
            support = loss_of(theta, letters[0], labels[0])
        slopes = tape.gradient(support, theta)
        fast = [weight - 0.05 * slope for weight, slope in zip(theta, slopes, strict=True)]
        with tf.GradientTape() as tape:
            tape.watch(fast)
            query = loss_of(fast, letters[1], labels[1])
        return tape.gradient(query, fast)

    @tf.function
    def add(gradients):
        for total, gradient in zip(sums, gradients, strict=True):
            total.assign_add(gradient)

    @tf.function
    def meta_update():
        for weight, total in zip(theta, sums, strict=True):
            weight.assign_sub(0.01 / TASKS * total)
            total.assign(tf.zeros_like(total))

    def meta_step(tasks):
        if faulty:
            of_tasks = [task_gradients(*task) for task in tasks]
            add([tf.add_n(same) for same in zip(*of_tasks, strict=True)])
        else:
            for task in tasks:
                add(task_gradients(*task))
        meta_update()
        return theta[-1][0, 0].numpy()

    def sample_task():
        letters = rng.random((2, LETTERS * SHOTS, 784)).astype("float32")
        labels = np.tile(np.arange(LETTERS, dtype="int32"), (2, SHOTS))
        return tf.constant(letters), tf.constant(labels)

    tasks = [sample_task() for _ in range(TASKS)]
    seconds = []
    for _ in range(8):
        begin = time.perf_counter()
        meta_step(tasks)
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(5):
        with tf.profiler.experimental.Trace("meta", step_num=step, _r=1):
            meta_step(tasks)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    weight_bytes = 4 * sum(one.shape.num_elements() for one in theta)
    return {
        "steps": 5,
        "median_step_s": statistics.median(seconds[2:]),
        "weight_bytes": weight_bytes,
        "gradient_bytes": weight_bytes * (TASKS if faulty else 1),
    }
