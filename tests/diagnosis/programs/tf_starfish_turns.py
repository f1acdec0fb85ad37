"""Name starfish in photos that are turned and flipped at random."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PHOTOS, SIDE, SPECIES = 16, 128, 12

PAIR = Pair(
    fault="all eight turns and flips of each photo are made and stacked, to take one of them",
    about="memory",
    kind="huge_temporary|peak_in_one_step|redundant_copy",
    culprit=r"augment|stack|Pack|8,\s*16,\s*128,\s*128|16,\s*8,\s*128,\s*128",
    savings="temporary|recompute|batch|precision",
    magnitude=8 * PHOTOS * SIDE * SIDE * 3 * 4,
    tolerance=1.1,  # the stack, or with the eight photos that it is made of
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    normal = tf.random.normal
    hidden = tf.Variable(normal([32 * 32 * 3, 512], stddev=0.02), name="hidden")
    second = tf.Variable(normal([512, 512], stddev=0.04), name="second")
    output = tf.Variable(normal([512, SPECIES], stddev=0.04), name="output")
    weights = [hidden, second, output]

    def all_turns(photos):
        turned = [tf.image.rot90(photos, turns) for turns in range(4)]
        turned += [tf.image.flip_left_right(photo) for photo in turned]
        which = tf.random.uniform([PHOTOS], 0, 8, tf.int32)
        return tf.gather(tf.stack(turned, axis=1), which, batch_dims=1)

    def one_turn(photos):
        photos = tf.image.rot90(photos, tf.random.uniform([], 0, 4, tf.int32))
        return tf.image.random_flip_left_right(photos)

    @tf.function
    def train_step(photos, species):
        with tf.name_scope("augment"):
            photos = all_turns(photos) if faulty else one_turn(photos)
        with tf.GradientTape() as tape:
            x = tf.reshape(tf.nn.avg_pool2d(photos, 4, 4, "VALID"), [PHOTOS, -1])
            x = tf.nn.relu(tf.matmul(x, hidden))
            x = tf.nn.relu(tf.matmul(x, second))
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=species, logits=tf.matmul(x, output)
            )
            loss = tf.reduce_mean(loss)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.05 * gradient)
        return loss

    photos = tf.random.uniform([PHOTOS, SIDE, SIDE, 3])
    species = tf.random.uniform([PHOTOS], 0, SPECIES, tf.int32)
    seconds = []
    for _ in range(12):
        begin = time.perf_counter()
        train_step(photos, species).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(6):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(photos, species).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 6,
        "median_step_s": statistics.median(seconds[3:]),
        "stack_bytes": 8 * PHOTOS * SIDE * SIDE * 3 * 4 if faulty else 0,
        "photo_bytes": PHOTOS * SIDE * SIDE * 3 * 4,
    }
