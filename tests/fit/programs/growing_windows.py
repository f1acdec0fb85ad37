"""Smooth a signal over windows that get longer: every step needs larger blocks than the last."""

import tensorflow as tf

THREADS = 1


def run():
    previous = tf.zeros([1])
    for step in range(1, 42):
        length = 5_000 * step
        signal = tf.sin(tf.range(length, dtype=tf.float32) / 40.0)
        framed = tf.signal.frame(signal, 256 + 7 * step, 128)
        smooth = tf.reduce_mean(framed, axis=1)
        previous = tf.concat([previous[-2_000:], smooth, signal], 0)
