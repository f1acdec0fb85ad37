"""Hold a few vectors of random lengths, and replace any of them at any time."""

import random

import tensorflow as tf

THREADS = 1


def run():
    draw = random.Random(7)
    held = []
    for step in range(400):
        most = draw.choice([20, 900, 5_000, 70_000, 400_000, 1_800_000])
        held.append(tf.random.uniform([draw.randint(most // 2, most)]))
        if len(held) > 18:
            held.pop(draw.randrange(len(held)))
        if step % 60 == 0:
            square = tf.random.uniform([draw.randint(200, 900)] * 2)
            tf.linalg.matmul(square, square, transpose_b=True)
