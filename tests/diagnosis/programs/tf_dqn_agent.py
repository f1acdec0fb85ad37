"""Deep Q-learning on random transitions, with a target network and a slow update of it."""

from __future__ import annotations

import statistics
import time
from itertools import pairwise
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="before each update all weights are copied to go back to, and two copies are held",
    about="memory",
    kind="redundant_copy|held_after_use|sawtooth",
    # The copy is made where the variable is next written, since Identity shares its buffer.
    culprit="AssignSubVariableOp|snapshot",
    savings="duplicate|older_copy|offload",
    magnitude=4 * (512 * 1024 + 1024 * 1024 + 1024 * 18),
    tolerance=1.05,  # one copy or two: either number is right
    faulty_allowed=("step_up", "cache"),  # the copies come with the first steps and stay
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
)


class QNetwork:
    def __init__(self, tf, sizes, name):
        self.tf = tf
        self.kernels = [
            tf.Variable(tf.random.normal([a, b], stddev=0.02), name=f"{name}_{i}")
            for i, (a, b) in enumerate(pairwise(sizes))
        ]

    def __call__(self, x):
        for kernel in self.kernels[:-1]:
            x = self.tf.nn.relu(self.tf.matmul(x, kernel))
        return self.tf.matmul(x, self.kernels[-1])


class Agent:
    def __init__(self, tf, *, can_go_back, sizes=(512, 1024, 1024, 18)):
        self.tf, self.can_go_back = tf, can_go_back
        self.online, self.target = QNetwork(tf, sizes, "online"), QNetwork(tf, sizes, "target")
        self.last_good = []
        self.learn = tf.function(self.learn)
        self.snapshot = tf.function(self.snapshot)

    def snapshot(self):
        with self.tf.name_scope("snapshot"):
            return [self.tf.identity(kernel) for kernel in self.online.kernels]

    def learn(self, observation, action, reward, following):
        tf = self.tf
        goal = reward + 0.99 * tf.reduce_max(self.target(following), 1)
        with tf.GradientTape() as tape:
            value = tf.gather(self.online(observation), action, batch_dims=1)
            loss = tf.reduce_mean(tf.square(value - tf.stop_gradient(goal)))
        gradients = tape.gradient(loss, self.online.kernels)
        for kernel, gradient in zip(self.online.kernels, gradients, strict=True):
            kernel.assign_sub(1e-3 * gradient)
        return loss

    def step(self, number, transition):
        if self.can_go_back:
            self.last_good = [*self.last_good[-1:], self.snapshot()]
        loss = self.learn(*transition)
        if number % 6 == 0:
            for mine, theirs in zip(self.target.kernels, self.online.kernels, strict=True):
                mine.assign(theirs)
        return float(loss)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    def transition():
        return (
            tf.random.normal([64, 512]),
            tf.random.uniform([64], 0, 18, tf.int32),
            tf.random.normal([64]),
            tf.random.normal([64, 512]),
        )

    tf.profiler.experimental.start("logs")
    agent = Agent(tf, can_go_back=faulty)
    seconds = []
    for number in range(12):
        begin = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            agent.step(number, transition())
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    weights = sum(kernel.numpy().nbytes for kernel in agent.online.kernels)
    return {
        "steps": 12,
        "median_step_s": statistics.median(seconds[3:]),
        "weight_bytes": weights,
        "copied_bytes": 2 * weights if faulty else 0,
    }
