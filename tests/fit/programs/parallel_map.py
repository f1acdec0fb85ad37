"""Four threads: a ``tf.data`` pipeline maps in parallel and prefetches while the loop trains."""

import tensorflow as tf

THREADS = 4


def spectrogram(index):
    samples = 16_000 + 4_000 * tf.cast(index % 3, tf.int32)
    wave = tf.random.stateless_normal([samples], (1, tf.cast(index, tf.int32)))
    power = tf.abs(tf.signal.stft(wave, 512, 128))
    return tf.image.resize(power[..., None], (128, 128))


def run():
    pipeline = (
        tf.data.Dataset.range(64)
        .map(spectrogram, num_parallel_calls=4)
        .batch(8)
        .prefetch(2)
        .with_options(_four_threads())
    )
    kernel = tf.Variable(tf.random.normal([5, 5, 1, 16], stddev=0.1))
    for batch in pipeline:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(batch, kernel, 2, "SAME")))
        kernel.assign_sub(0.1 * tape.gradient(loss, kernel))


def _four_threads():
    options = tf.data.Options()
    options.threading.private_threadpool_size = 4
    options.autotune.enabled = False
    return options
