"""A compiled function that is traced again for every new length of a sentence."""

import random

import tensorflow as tf

THREADS = 1
WEIGHTS = {}


@tf.function
def similarity(sentence):
    hidden = tf.nn.relu(sentence @ WEIGHTS["in"])
    scores = tf.nn.softmax(hidden @ tf.transpose(hidden))
    return tf.reduce_sum(scores @ hidden, axis=0)


def run():
    WEIGHTS["in"] = tf.Variable(tf.random.normal([100, 160]))
    lengths = [random.Random(2).randrange(50, 1100) for _ in range(12)]
    lengths += [900, 300, 1200, 60]
    total = tf.zeros([160])
    for length in lengths * 2:
        total += similarity(tf.random.normal([length, 100]))
