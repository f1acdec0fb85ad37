"""A buffer of episodes of random lengths, of which a random one is thrown away for each new one.

Its order of allocations was searched for: it runs under some limits below others at which it fails.
"""

import random

import tensorflow as tf

THREADS = 1


def run():
    rng = random.Random(56)
    episodes = []
    for _ in range(70):
        floats = rng.randint(1000, 6_000_000) // 4
        episodes.append(tf.random.uniform([floats]))
        while len(episodes) > 7:
            episodes.pop(rng.randrange(len(episodes)))
