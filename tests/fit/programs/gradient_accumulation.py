"""Add up gradients over micro-batches before each update, written with ``tf.Module`` and lists."""

import itertools

import tensorflow as tf

THREADS = 1


class MLP(tf.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = [
            (tf.Variable(tf.random.normal((a, b)) * (2 / a) ** 0.5), tf.Variable(tf.zeros(b)))
            for a, b in itertools.pairwise(sizes)
        ]

    def __call__(self, x):
        for w, b in self.layers[:-1]:
            x = tf.nn.leaky_relu(x @ w + b)
        w, b = self.layers[-1]
        return x @ w + b


def run():
    mlp = MLP([180, 800, 600, 20])
    params = list(mlp.trainable_variables)
    for update in range(4):
        accumulated = [tf.zeros_like(p) for p in params]
        for micro in range(5):
            x = tf.random.normal((100 + 150 * ((update + micro) % 4), 180))
            with tf.GradientTape() as tape:
                logits = mlp(x)
                loss = -tf.reduce_mean(tf.nn.log_softmax(logits)[:, 0])
            grads = tape.gradient(loss, params)
            accumulated = [a + g for a, g in zip(accumulated, grads, strict=True)]
        for p, a in zip(params, accumulated, strict=True):
            p.assign(p - 0.01 * a)
