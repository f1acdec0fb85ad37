"""Volumes of more than 100 MiB: what is left of a block is split off from 128 MiB on.

A block of 300 MiB is freed and a smaller volume takes its place, with more than half of it, so that
only the rule of 128 MiB decides whether the rest stays free.
"""

import tensorflow as tf

THREADS = 1
MIB = 1 << 20


def volume(mib):
    return tf.zeros([mib, 16, 64, 1024], tf.uint8)


def run():
    first = volume(300)
    del first
    for mib, rest in ((160, 100), (190, 90), (168, 120), (120, 130), (210, 40)):
        main = volume(mib)
        side = volume(rest)
        small = [tf.random.uniform([n * 90_000]) for n in range(1, 12)]
        del main
        again = volume(mib - 15)
        del side, again, small
    for _ in range(30):
        rows = [tf.random.uniform([300_000 + 20_000 * n]) for n in range(5)]
        tf.add_n([tf.reduce_sum(row) for row in rows])
