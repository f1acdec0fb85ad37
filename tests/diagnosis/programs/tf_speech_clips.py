"""Train a classifier of short sound clips on spectrograms that the input pipeline computes."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the shuffle's buffer holds a whole epoch of spectrograms and fills anew each epoch",
    about="time",
    kind="input_bound|step_variation",
    culprit="Shuffle|IteratorGetNext",
    magnitude=6,
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "2"},
)

CLIPS, BATCH, SAMPLES, CLASSES = 48, 8, 16000, 12


def spectrogram(clip, label):
    import tensorflow as tf

    wave = tf.cast(tf.io.decode_raw(clip, tf.int16), tf.float32) / 32768.0
    frames = tf.signal.stft(wave, frame_length=400, frame_step=160, fft_length=512)
    return tf.math.log(tf.abs(frames) + 1e-6), label


def input_pipeline(tf, clips, labels, *, shuffle_first):
    dataset = tf.data.Dataset.from_tensor_slices((clips, labels))
    if shuffle_first:
        dataset = dataset.repeat().shuffle(CLIPS).map(spectrogram, tf.data.AUTOTUNE)
        return dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.autotune.enabled = False
    dataset = dataset.map(spectrogram).shuffle(len(clips)).batch(BATCH).repeat()
    return dataset.with_options(options)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(2)
    clips = [rng.integers(-9000, 9000, SAMPLES, dtype=np.int16).tobytes() for _ in range(CLIPS)]
    labels = rng.integers(0, CLASSES, CLIPS)
    batches = iter(input_pipeline(tf, clips, labels, shuffle_first=not faulty))

    kernel = tf.Variable(tf.random.normal([5, 257, 96], stddev=0.02))
    head = tf.Variable(tf.random.normal([96, CLASSES], stddev=0.1))

    @tf.function
    def learn(spectrograms, label):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.nn.conv1d(spectrograms, kernel, 2, "SAME"))
            logits = tf.matmul(tf.reduce_max(hidden, 1), head)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, (kernel, head))
        for weight, gradient in zip((kernel, head), gradients, strict=True):
            weight.assign_sub(0.01 * gradient)
        return loss

    seconds = []
    for _ in range(24):
        begin = time.perf_counter()
        learn(*next(batches)).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(24, 42):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            learn(*next(batches)).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 18,
        "median_step_s": statistics.median(seconds[6:]),
        "mean_step_s": statistics.mean(seconds[6:]),
        "max_step_s": max(seconds[6:]),
        "steps_per_epoch": CLIPS // BATCH,
    }
