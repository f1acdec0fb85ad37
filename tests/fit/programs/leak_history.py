"""A training loop that appends losses and predictions to a list for a plot nobody draws."""

import numpy as np
import tensorflow as tf

THREADS = 1

history = []


def run():
    rng = np.random.RandomState(5)
    data, target = rng.rand(60, 512, 64).astype("f"), rng.rand(60, 512, 1).astype("f")
    w1 = tf.Variable(tf.random.normal([64, 300], stddev=0.1))
    w2 = tf.Variable(tf.random.normal([300, 1], stddev=0.1))
    for x, y in zip(data, target, strict=True):
        with tf.GradientTape() as t:
            h = tf.nn.relu(x @ w1)
            pred = h @ w2
            loss = tf.reduce_mean((pred - y) ** 2)
        g1, g2 = t.gradient(loss, [w1, w2])
        w1.assign_sub(0.01 * g1)
        w2.assign_sub(0.01 * g2)
        history.append({"loss": loss, "pred": pred, "hidden": h})
