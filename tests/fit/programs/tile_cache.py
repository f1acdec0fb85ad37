"""Map tiles of random areas in a small cache with random replacement.

As in ``replay_buffer``, fitting is not monotone in the limit; here the holes are wide.
"""

import random

import tensorflow as tf

THREADS = 1
TILES, LARGEST, SLOTS = 60, 12_000_000, 5


class Cache:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tiles = []

    def load(self):
        pixels = self.random.randint(1000, LARGEST) // 4
        self.tiles.append(tf.random.uniform([pixels]))
        while len(self.tiles) > SLOTS:
            self.tiles.pop(self.random.randrange(len(self.tiles)))


def run():
    cache = Cache(75)
    for _ in range(TILES):
        cache.load()
