"""Find the kind of whale from long recordings, with attention over their frames."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

CALLS, FRAMES, BANDS, WIDTH, HEADS, WINDOW, KINDS = 2, 768, 32, 128, 4, 64, 6

PAIR = Pair(
    fault="each frame attends to all frames of a long recording: frames x frames in each head",
    about="memory",
    kind="huge_temporary|accumulated_in_step|one_pass|redundant_copy",
    culprit=r"attention|768,\s*768",
    savings="temporary|recompute|precision|batch|pieces",
    magnitude=CALLS * HEADS * FRAMES * FRAMES * 4,
    tolerance=4.1,  # one matrix of scores or those that are live together
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    def weight(rows, columns, name):
        return tf.Variable(tf.random.normal([rows, columns], stddev=rows**-0.5), name=name)

    front, qkv = weight(BANDS, WIDTH, "front"), weight(WIDTH, 3 * WIDTH, "qkv")
    up, down = weight(WIDTH, 1024, "up"), weight(1024, WIDTH, "down")
    output = weight(WIDTH, KINDS, "output")
    variables = [front, qkv, up, down, output]
    span = FRAMES if faulty else WINDOW

    def attend(x):
        with tf.name_scope("attention"):
            pieces = tf.reshape(x @ qkv, [-1, span, 3, HEADS, WIDTH // HEADS])
            q, k, v = tf.unstack(tf.transpose(pieces, [2, 0, 3, 1, 4]))
            scores = tf.matmul(q, k, transpose_b=True) / (WIDTH // HEADS) ** 0.5
            mixed = tf.matmul(tf.nn.softmax(scores), v)
            return tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, WIDTH])

    @tf.function
    def train_step(frames, kinds):
        with tf.GradientTape() as tape:
            x = tf.reshape(frames, [-1, BANDS]) @ front
            x += attend(x)
            x += tf.nn.relu(x @ up) @ down
            calls = tf.reduce_mean(tf.reshape(x, [CALLS, FRAMES, WIDTH]), axis=1)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(kinds, calls @ output)
            loss = tf.reduce_mean(loss)
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    frames = tf.random.normal([CALLS, FRAMES, BANDS])
    kinds = tf.random.uniform([CALLS], 0, KINDS, tf.int32)
    seconds = []
    for _ in range(12):
        begin = time.perf_counter()
        train_step(frames, kinds).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(6):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(frames, kinds).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 6,
        "median_step_s": statistics.median(seconds[3:]),
        "scores_bytes": CALLS * HEADS * FRAMES * span * 4,
    }
