"""A ``tf.data`` pipeline with one thread: decode, augment, shuffle, batch; a mean at the end."""

import tensorflow as tf

THREADS = 1


def augment(index):
    picture = tf.random.stateless_uniform((96, 96, 3), (2, tf.cast(index, tf.int32)))
    picture = tf.image.resize(picture, (112, 112))
    return tf.image.random_flip_left_right(picture[8:-8, 8:-8], seed=3)


def run():
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    options.autotune.enabled = False
    pipeline = (
        tf.data.Dataset.range(120)
        .map(augment)
        .shuffle(40, seed=1)
        .batch(16, drop_remainder=True)
        .with_options(options)
    )
    mean = tf.zeros((96, 96, 3))
    for batch in pipeline:
        mean = 0.9 * mean + 0.1 * tf.reduce_mean(batch, 0)
