"""Score an archive of images on two hosts, each one its half, without talking to the other."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the half of worker 1 is large PNG, decoded one after another; the other half is raw",
    about="time",
    kind="input_bound|straggler",
    culprit="worker1",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "2"},
)

SIDE, BATCH, STEPS = 96, 32, 8


class Scorer:
    def __init__(self, tf):
        self.tf = tf
        self.filters = tf.Variable(tf.random.normal([8, 8, 3, 48], stddev=0.05))
        self.head = tf.Variable(tf.random.normal([48, 5], stddev=0.1))
        self.score = tf.function(self.score)

    def score(self, images):
        tf = self.tf
        maps = tf.nn.relu(
            tf.nn.conv2d(tf.cast(images, tf.float32) / 255.0, self.filters, 4, "SAME")
        )
        return tf.nn.softmax(tf.matmul(tf.reduce_mean(maps, [1, 2]), self.head))


def archive(tf, *, compressed):
    side = 2 * SIDE if compressed else SIDE
    pixels = tf.cast(tf.random.uniform([64, side, side, 3], 0, 255, tf.int32), tf.uint8)
    if not compressed:
        images = tf.data.Dataset.from_tensor_slices(pixels).repeat()
        return images.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    encoded = [tf.io.encode_png(one).numpy() for one in pixels]
    options = tf.data.Options()
    options.autotune.enabled = False
    images = tf.data.Dataset.from_tensor_slices(encoded).repeat()
    images = images.map(lambda one: tf.image.resize(tf.io.decode_png(one, 3), [SIDE, SIDE]))
    return images.batch(BATCH).with_options(options)


def run_shard(target, compressed):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    scorer, batches = Scorer(tf), iter(archive(tf, compressed=compressed))
    seconds = []
    for _ in range(20):
        begin = time.perf_counter()
        scorer.score(next(batches)).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for number in range(STEPS):
        with tf.profiler.experimental.Trace("predict", step_num=number, _r=1):
            scorer.score(next(batches)).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", Path(target))
    sys.stdout.write(f"{statistics.median(seconds[5:])}\n")


def record(folder: Path, *, faulty: bool) -> dict:
    medians = []
    for host in (0, 1):
        target = folder / f"plugins/profile/run/worker{host}.xplane.pb"
        call = f"import train; train.run_shard({str(target)!r}, {faulty and host == 1})"
        done = subprocess.run(
            [sys.executable, "-c", call], check=True, stdout=subprocess.PIPE, text=True
        )
        medians.append(float(done.stdout.split()[-1]))
    return {"steps": STEPS, "median_step_s": max(medians), "median_step_s_of_hosts": medians}
