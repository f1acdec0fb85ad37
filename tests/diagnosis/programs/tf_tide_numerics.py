"""Forecast the tide at harbours from three days of levels, with gated residual layers."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="tf.debugging.enable_check_numerics() was left on, which searches all tensors for NaN",
    about="time",
    kind="expensive_op|tiny_ops|unfused_elementwise|launch_bound|host_bound",
    culprit="CheckNumerics|check_numerics|DebugNumericSummary",
    twin_allowed=("unfused_elementwise",),  # gates are, and TensorFlow does not fuse them
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "2"},
    is_held_out=True,
    round=4,
)

DEBUG_NAN = {"faulty": True, "healthy": False}


class Gated:
    """A dense layer with a residual, whose one half is the gate of the other."""

    def __init__(self, tf, width, number):
        start = tf.random.stateless_normal([width, 2 * width], [number, 1]) * 0.1
        self.tf, self.kernel = tf, tf.Variable(start)

    def __call__(self, x):
        value, gate = self.tf.split(self.tf.matmul(x, self.kernel), 2, axis=-1)
        return x + self.tf.tanh(value) * self.tf.sigmoid(gate)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    if DEBUG_NAN["faulty" if faulty else "healthy"]:
        tf.debugging.enable_check_numerics()
    blocks = [Gated(tf, 32, number) for number in range(5)]
    first = tf.Variable(tf.random.stateless_normal([74, 32], [7, 7]) * 0.1)
    last = tf.Variable(tf.random.stateless_normal([32, 1], [7, 8]) * 0.1)
    weights = [first, *(block.kernel for block in blocks), last]
    velocity = [tf.Variable(tf.zeros_like(weight)) for weight in weights]

    @tf.function(autograph=False)
    def train_step(levels, following):
        with tf.GradientTape() as tape:
            x = tf.matmul(levels, first)
            for block in blocks:
                x = block(x)
            loss = tf.reduce_mean(tf.abs(tf.matmul(x, last) - following))
        for weight, speed, slope in zip(
            weights, velocity, tape.gradient(loss, weights), strict=True
        ):
            speed.assign(0.9 * speed + slope)
            weight.assign_sub(0.002 * speed)
        return loss

    hours = tf.random.stateless_normal([12288, 75], [3, 1])
    levels, following = hours[:, :-1], hours[:, -1:]
    seconds = []
    for _ in range(30):
        began = time.perf_counter()
        train_step(levels, following).numpy()
        seconds.append(time.perf_counter() - began)
    tf.profiler.experimental.start("logs")
    for step in range(8):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(levels, following).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 8,
        "median_step_s": statistics.median(seconds[5:]),
        "least_step_s": min(seconds),
    }
