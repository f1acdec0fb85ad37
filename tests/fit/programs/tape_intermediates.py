"""Differentiate through a long chain of elementwise operations on a large field, eagerly."""

import tensorflow as tf

THREADS = 1


def diffuse(field, rate):
    north, south = tf.roll(field, 1, 0), tf.roll(field, -1, 0)
    west, east = tf.roll(field, 1, 1), tf.roll(field, -1, 1)
    return field + rate * (north + south + west + east - 4.0 * field)


def run():
    rate = tf.Variable(0.1)
    start = tf.random.uniform([640, 800])
    for steps in (4, 9, 6):
        with tf.GradientTape(persistent=True) as tape:
            field = start
            for _ in range(steps):
                field = tf.tanh(diffuse(field, rate))
            energy = tf.reduce_mean(field**2)
            mean = tf.reduce_mean(field)
        rate.assign_sub(0.01 * (tape.gradient(energy, rate) + tape.gradient(mean, rate)))
        del tape
