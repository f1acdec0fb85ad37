"""Eight Python threads that each evaluate their own candidates, with barely shared memory."""

from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf

THREADS = 8


def evaluate(worker):
    best = 0.0
    for candidate in range(7):
        size = 150 + 60 * ((worker + candidate) % 5)
        matrix = tf.random.stateless_normal((size, size), (worker, candidate))
        product = matrix @ tf.transpose(matrix)
        best = max(best, float(tf.linalg.trace(product @ product)))
    return best


def run():
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(evaluate, range(16)))
