"""Factorise ratings: two embeddings of which a batch updates a few rows."""

import numpy as np
import tensorflow as tf

THREADS = 1


def run():
    rng = np.random.default_rng(8)
    users = tf.Variable(tf.random.normal([30_000, 32]), name="users")
    items = tf.Variable(tf.random.normal([9_000, 32]), name="items")
    opt = tf.keras.optimizers.Adagrad(0.1)
    opt.build([users, items])
    for batch in (512, 512, 2048, 512, 8192, 512, 4096, 1024, 512, 512):
        u, i = rng.integers(0, 30_000, batch), rng.integers(0, 9_000, batch)
        rating = tf.convert_to_tensor(rng.random(batch, dtype=np.float32))
        with tf.GradientTape() as tape:
            guess = tf.reduce_sum(tf.gather(users, u) * tf.gather(items, i), axis=1)
            loss = tf.reduce_mean(tf.square(guess - rating))
        grads = tape.gradient(loss, [users, items])
        opt.apply_gradients(zip(grads, [users, items], strict=True))
