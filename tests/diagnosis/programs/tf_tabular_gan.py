"""A GAN that makes rows of a table, with an Adam optimizer for each of its two networks."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

COLUMNS, NOISE, WIDTH, BATCH = 384, 256, 1536, 32

PAIR = Pair(
    fault="both optimizers are built over the variables of both networks: moments are held twice",
    about="memory",
    kind="optimizer_state|redundant_copy",
    culprit="adam|moment|velocity|zeros|Fill",
    savings="duplicate|offload|precision",
    magnitude=2 * 4 * WIDTH * (NOISE + COLUMNS + COLUMNS + 1),
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    is_held_out=True,
    round=2,
)


class Network:
    def __init__(self, tf, sizes, name):
        self.tf, (first, hidden, last) = tf, sizes
        self.up = tf.Variable(tf.random.normal([first, hidden], stddev=0.02), name=f"{name}/up")
        self.out = tf.Variable(tf.random.normal([hidden, last], stddev=0.02), name=f"{name}/out")
        self.variables = [self.up, self.out]

    def __call__(self, x):
        return self.tf.matmul(self.tf.nn.relu(self.tf.matmul(x, self.up)), self.out)


class Adam:
    """Adam with its moments in variables, built before the first step."""

    def __init__(self, tf, rate=2e-4):
        self.tf, self.rate, self.moments = tf, rate, {}

    def build(self, variables):
        zeros = self.tf.zeros
        for one in variables:
            m, v = (self.tf.Variable(zeros(one.shape), name=f"adam/{n}") for n in "mv")
            self.moments[one.ref()] = m, v

    def apply(self, gradients, variables):
        tf = self.tf
        for variable, gradient in zip(variables, gradients, strict=True):
            m, v = self.moments[variable.ref()]
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=m.handle,
                v=v.handle,
                beta1_power=0.5,
                beta2_power=0.999,
                lr=self.rate,
                beta1=0.5,
                beta2=0.999,
                epsilon=1e-7,
                grad=gradient,
            )


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    rows = tf.random.normal([BATCH, COLUMNS])
    tf.profiler.experimental.start("logs")
    generator = Network(tf, (NOISE, WIDTH, COLUMNS), "generator")
    discriminator = Network(tf, (COLUMNS, WIDTH, 1), "discriminator")
    g_optimizer, d_optimizer = Adam(tf), Adam(tf)
    both = [*generator.variables, *discriminator.variables]
    g_optimizer.build(both if faulty else generator.variables)
    d_optimizer.build(both if faulty else discriminator.variables)
    bce = tf.nn.sigmoid_cross_entropy_with_logits

    @tf.function
    def train_step(rows):
        with tf.GradientTape(persistent=True) as tape:
            fake = discriminator(generator(tf.random.normal([BATCH, NOISE])))
            real = discriminator(rows)
            g_loss = tf.reduce_mean(bce(tf.ones_like(fake), fake))
            d_loss = bce(tf.ones_like(real), real) + bce(tf.zeros_like(fake), fake)
            d_loss = tf.reduce_mean(d_loss)
        of_generator = tape.gradient(g_loss, generator.variables)
        of_discriminator = tape.gradient(d_loss, discriminator.variables)
        g_optimizer.apply(of_generator, generator.variables)
        d_optimizer.apply(of_discriminator, discriminator.variables)
        return g_loss, d_loss

    seconds = []
    for step in range(9):
        begin = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            g_loss, d_loss = train_step(rows)
            g_loss.numpy(), d_loss.numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    weight_bytes = 4 * sum(one.numpy().size for one in both)
    return {
        "steps": 9,
        "median_step_s": statistics.median(seconds[2:]),
        "weight_bytes": weight_bytes,
        "moment_bytes": (4 if faulty else 2) * weight_bytes,
    }
