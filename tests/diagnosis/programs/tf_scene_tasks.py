"""Two tasks of one trunk, whose gradients are balanced by their norms, in eager mode."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

ROWS, WIDTH = 3072, 128

PAIR = Pair(
    fault="a persistent tape lives on, with its activations, until the next forward pass is done",
    about="memory",
    kind="held_after_use|redundant_copy",
    culprit="MatMul|Softplus|3072,\\s*128",
    savings="older_copy|offload|batch",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    is_held_out=True,
    round=2,
)


class TwoTasks:
    def __init__(self, tf):
        self.tf = tf
        sizes = ((64, WIDTH), *[(WIDTH, WIDTH)] * 3)
        self.trunk = [tf.Variable(tf.random.normal(one, stddev=0.08)) for one in sizes]
        self.depth = tf.Variable(tf.random.normal([WIDTH, 1], stddev=0.08))
        self.label = tf.Variable(tf.random.normal([WIDTH, 20], stddev=0.08))

    def forward(self, x, depth, label):
        tf = self.tf
        with tf.GradientTape(persistent=True) as tape:
            for kernel in self.trunk:
                x = tf.nn.softplus(tf.matmul(x, kernel))
            l1 = tf.reduce_mean(tf.abs(tf.matmul(x, self.depth) - depth))
            ce = tf.nn.sparse_softmax_cross_entropy_with_logits(label, tf.matmul(x, self.label))
            ce = tf.reduce_mean(ce)
        return l1, ce, tape

    def apply_gradients(self, l1, ce, tape, rate=0.05):
        tf = self.tf
        of_l1, of_ce = tape.gradient(l1, self.trunk), tape.gradient(ce, self.trunk)
        scale = tf.linalg.global_norm(of_l1) / tf.linalg.global_norm(of_ce)
        for kernel, first, second in zip(self.trunk, of_l1, of_ce, strict=True):
            kernel.assign_sub(rate * (first + scale * second))
        self.depth.assign_sub(rate * tape.gradient(l1, self.depth))
        self.label.assign_sub(rate * tape.gradient(ce, self.label))


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    model = TwoTasks(tf)
    x, depth = tf.random.normal([ROWS, 64]), tf.random.uniform([ROWS, 1])
    label = tf.random.uniform([ROWS], 0, 20, tf.int32)
    seconds = []
    for step in range(12):
        if step == 6:
            tf.profiler.experimental.start("logs")
        begin = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            l1, ce, tape = model.forward(x, depth, label)
            model.apply_gradients(l1, ce, tape)
            if not faulty:
                del tape
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 6,
        "median_step_s": statistics.median(seconds[2:6]),
        "activation_bytes": 8 * ROWS * WIDTH * 4,
    }
