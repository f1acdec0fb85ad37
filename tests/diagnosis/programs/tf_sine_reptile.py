"""Meta-learning with Reptile on sine waves: adapt to one task a step, then move towards it."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="inner_step is a tf.function made anew for each task, so each task traces it again",
    about="time",
    kind="recompilation|retrac",
    culprit="inner_step|adapt",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "2"},
    is_held_out=True,
    round=2,
)

HIDDEN, SHOTS, INNER_STEPS = 192, 512, 4


class Reptile:
    def __init__(self, tf, inner_rate=0.02, meta_rate=0.1):
        self.tf, self.inner_rate, self.meta_rate = tf, inner_rate, meta_rate
        sizes = ((1, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1))
        self.slow = [tf.Variable(tf.random.normal(s, stddev=s[0] ** -0.5)) for s in sizes]
        self.fast = [tf.Variable(one) for one in self.slow]

    def predict(self, x):
        for kernel in self.fast[:-1]:
            x = self.tf.tanh(self.tf.matmul(x, kernel))
        return self.tf.matmul(x, self.fast[-1])

    def make_inner_step(self):
        tf = self.tf

        @tf.function
        def inner_step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.predict(x) - y))
            for weight, grad in zip(self.fast, tape.gradient(loss, self.fast), strict=True):
                weight.assign_sub(self.inner_rate * grad)
            return loss

        return inner_step

    def adapt(self, task, inner_step):
        x, y = task
        for fast, slow in zip(self.fast, self.slow, strict=True):
            fast.assign(slow)
        for _ in range(INNER_STEPS):
            loss = inner_step(x, y)
        for fast, slow in zip(self.fast, self.slow, strict=True):
            slow.assign_add(self.meta_rate * (fast - slow))
        return loss


def sine_task(tf):
    amplitude, phase = tf.random.uniform([], 0.5, 5.0), tf.random.uniform([], 0.0, 3.0)
    x = tf.random.uniform([SHOTS, 1], -5.0, 5.0)
    return x, amplitude * tf.sin(x + phase)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    learner = Reptile(tf)
    shared = learner.make_inner_step()

    def meta_step():
        inner_step = learner.make_inner_step() if faulty else shared
        return float(learner.adapt(sine_task(tf), inner_step))

    seconds = []
    for _ in range(12):
        begin = time.perf_counter()
        meta_step()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for number in range(8):
        with tf.profiler.experimental.Trace("meta_step", step_num=number, _r=1):
            meta_step()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 8, "median_step_s": statistics.median(seconds[3:])}
