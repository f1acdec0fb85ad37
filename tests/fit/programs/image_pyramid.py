"""Blur and shrink pictures of many sizes, hold all levels of the latest two pictures."""

import tensorflow as tf

THREADS = 1
SIZES = [(480, 640), (300, 300), (720, 960), (200, 900), (600, 600), (720, 500), (333, 777)]


def pyramid(picture):
    levels = [picture]
    kernel = tf.ones((5, 5, 1, 1)) / 25.0
    while min(levels[-1].shape[1:3]) > 40:
        channels = tf.unstack(levels[-1], axis=-1)
        blurred = [tf.nn.conv2d(c[..., None], kernel, 1, "SAME") for c in channels]
        levels.append(tf.concat(blurred, -1)[:, ::2, ::2])
    return levels


def run():
    latest = []
    for height, width in SIZES * 2:
        latest = [*latest[-1:], pyramid(tf.random.uniform((1, height, width, 3)))]
