"""Answer requests of random sizes while ten earlier answers wait to be sent in any order.

As in ``replay_buffer``, fitting is not monotone in the limit.
"""

import random

import tensorflow as tf

THREADS = 1


def requests(count, most, draw):
    for _ in range(count):
        yield draw.randint(1000, most) // 4


def run():
    draw, waiting = random.Random(42), []
    for number in requests(100, 3_000_000, draw):
        waiting.append(tf.random.uniform((number,)))
        while len(waiting) > 10:
            del waiting[draw.randrange(len(waiting))]
