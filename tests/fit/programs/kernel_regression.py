"""Linear algebra without a network: Gram matrices of several sizes, Cholesky factors, solves."""

import numpy as np
import tensorflow as tf

THREADS = 1


def gram(a, b, width):
    distance = tf.reduce_sum(a**2, 1)[:, None] - 2 * a @ tf.transpose(b) + tf.reduce_sum(b**2, 1)
    return tf.exp(-distance / (2 * width**2))


def run():
    rng = np.random.default_rng(12)
    for n in (300, 700, 450, 900, 250):
        x = tf.constant(rng.normal(size=(n, 6)))
        y = tf.constant(rng.normal(size=(n, 2)))
        best = None
        for width in (0.5, 1.0, 2.0, 4.0):
            factor = tf.linalg.cholesky(gram(x, x, width) + 1e-3 * tf.eye(n, dtype=tf.float64))
            alpha = tf.linalg.cholesky_solve(factor, y)
            evidence = tf.reduce_sum(y * alpha) + 2 * tf.reduce_sum(
                tf.math.log(tf.linalg.diag_part(factor))
            )
            if best is None or evidence < best[0]:
                best = evidence, width, alpha
        gram(tf.constant(rng.normal(size=(500, 6))), x, best[1]) @ best[2]
