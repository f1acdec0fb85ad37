"""A small GAN; the trainer follows its progress in a history of samples and losses."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the history holds the generated images of every step",
    about="memory",
    kind="leak",
    culprit="generator|Tanh|samples|images",
    savings="older_copy|leak|release",
    magnitude=128 * 28 * 28 * 4,
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    is_held_out=False,
)

PIXELS, LATENT, BATCH = 28 * 28, 64, 128


class GanTrainer:
    def __init__(self, tf, log_images_every):
        self.tf = tf
        dense, self.log_images_every = tf.keras.layers.Dense, log_images_every
        self.generator = tf.keras.Sequential(
            [dense(128, "relu"), dense(PIXELS, "tanh")], name="generator"
        )
        self.discriminator = tf.keras.Sequential(
            [dense(128, tf.nn.leaky_relu), dense(1)], name="discriminator"
        )
        self.history = {"loss": [], "samples": []}
        self.train_step = tf.function(self.train_step)

    def train_step(self, real):
        tf = self.tf
        bce = tf.nn.sigmoid_cross_entropy_with_logits
        with tf.GradientTape(persistent=True) as tape:
            fake = self.generator(tf.random.normal([BATCH, LATENT]))
            on_real, on_fake = self.discriminator(real), self.discriminator(fake)
            d_loss = tf.reduce_mean(
                bce(tf.ones_like(on_real), on_real) + bce(tf.zeros_like(on_fake), on_fake)
            )
            g_loss = tf.reduce_mean(bce(tf.ones_like(on_fake), on_fake))
        for network, loss in ((self.generator, g_loss), (self.discriminator, d_loss)):
            weights = network.trainable_weights
            for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
                weight.assign_sub(0.01 * gradient)
        return d_loss, g_loss, fake

    def on_step(self, step, real):
        d_loss, g_loss, fake = self.train_step(real)
        self.history["loss"].append((float(d_loss), float(g_loss)))
        if self.log_images_every and step % self.log_images_every == 0:
            self.history["samples"].append(fake)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    trainer = GanTrainer(tf, log_images_every=1 if faulty else 0)
    real = tf.random.uniform([BATCH, PIXELS], -1, 1)
    seconds = []
    for step in range(8):
        begin = time.perf_counter()
        trainer.on_step(step, real)
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(8, 24):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            trainer.on_step(step, real)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 16,
        "median_step_s": statistics.median(seconds[3:]),
        "image_bytes_per_step": BATCH * PIXELS * 4 if faulty else 0,
    }
