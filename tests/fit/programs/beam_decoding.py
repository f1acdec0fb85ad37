"""Decode sequences in a compiled while loop that concatenates its state in every iteration."""

import tensorflow as tf

THREADS = 1
BEAMS, STATE = 24, 96


@tf.function
def decode(prefix, steps):
    w = tf.random.stateless_normal([STATE, STATE], (1, 2)) / STATE**0.5
    past, position = prefix, 0
    while position < steps:
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(past, tf.TensorShape([BEAMS, None, STATE]))]
        )
        query = tf.tanh(past[:, -1:] @ w)
        weights = tf.nn.softmax(tf.matmul(query, past, transpose_b=True))
        past = tf.concat([past, weights @ past], axis=1)
        position += 1
    return past


def run():
    decoded = []
    for length, steps in ((60, 40), (10, 90), (200, 30)):
        decoded.append(decode(tf.random.normal([BEAMS, length, STATE]), tf.constant(steps)))
    tf.concat(decoded, axis=1)
