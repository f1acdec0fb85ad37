"""Train the critic of a Wasserstein GAN whose layers are divided by their spectral norms."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the spectral norm of each layer comes from a whole SVD in each step",
    about="time",
    kind="expensive_op",
    culprit="Svd|spectral",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    is_held_out=True,
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)

    class SpectralDense(tf.Module):
        def __init__(self, fan_in, units, name=None):
            super().__init__(name=name)
            self.w = tf.Variable(tf.random.normal([fan_in, units], stddev=fan_in**-0.5))
            self.b = tf.Variable(tf.zeros([units]))
            self.u = tf.Variable(tf.random.normal([units, 1]), trainable=False)

        def spectral_norm(self):
            with tf.name_scope("spectral_norm"):
                w = tf.stop_gradient(self.w)
                if faulty:
                    return tf.linalg.svd(w, compute_uv=False)[0]
                v = tf.math.l2_normalize(tf.matmul(w, self.u))
                wv = tf.matmul(w, v, transpose_a=True)
                self.u.assign(tf.math.l2_normalize(wv))
                return tf.norm(wv)

        @tf.Module.with_name_scope
        def __call__(self, x):
            return tf.matmul(x, self.w / self.spectral_norm()) + self.b

    class Critic(tf.Module):
        def __init__(self):
            super().__init__(name="critic")
            sizes = ((128, 160), (160, 160), (160, 96))
            self.hidden = [
                SpectralDense(a, b, name=f"sn_dense{i}") for i, (a, b) in enumerate(sizes)
            ]
            self.score = tf.Variable(tf.random.normal([96, 1], stddev=0.1))

        @tf.Module.with_name_scope
        def __call__(self, x):
            for layer in self.hidden:
                x = tf.nn.leaky_relu(layer(x))
            return tf.matmul(x, self.score)

    critic = Critic()

    @tf.function
    def critic_step(real, fake):
        with tf.GradientTape() as tape:
            both = critic(tf.concat([real, fake], 0))
            of_real, of_fake = tf.split(both, 2)
            distance = tf.reduce_mean(of_fake) - tf.reduce_mean(of_real)
        variables = critic.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(distance, variables), strict=True):
            variable.assign_sub(1e-3 * gradient)
        return distance

    real, fake = tf.random.normal([512, 128], 0.3), tf.random.normal([512, 128])
    seconds, distances = [], []
    for iteration in range(28):
        if iteration == 18:
            tf.profiler.experimental.start("logs")
        begin = time.perf_counter()
        with tf.profiler.experimental.Trace("critic", step_num=iteration, _r=1):
            distances.append(float(critic_step(real, fake)))
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 10, "median_step_s": statistics.median(seconds[3:18])}
