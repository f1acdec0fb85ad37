"""Train a small translation decoder; gradients are summed over micro-batches before an update."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the logits of all micro-batches are held, joined, and go through one loss",
    about="memory",
    kind="accumulated_in_step|one_pass|huge_temporary",
    culprit="lm_head|concat|softmax",
    savings="recompute|batch|temporary",
    magnitude=4 * 8 * 32 * 2000 * 4,
    tolerance=2.1,  # the joined logits alone, or with their parts and the gradient of the loss
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    is_held_out=False,
)

VOCABULARY, WIDTH, PARTS, MICRO, LENGTH = 2000, 64, 4, 8, 32


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    table = tf.Variable(
        tf.random.normal([VOCABULARY, WIDTH], stddev=0.02), name="table", trainable=False
    )
    ffn = [
        tf.Variable(tf.random.normal([a, b], stddev=0.05))
        for a, b in ((WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
    ]
    head = tf.Variable(tf.random.normal([WIDTH, VOCABULARY], stddev=0.02), name="lm_head")
    variables = [*ffn, head]

    def decoder(tokens):
        hidden = tf.gather(table, tokens[:, :-1])
        wide = tf.nn.relu(tf.einsum("btd,df->btf", hidden, ffn[0]))
        hidden += tf.einsum("btf,fd->btd", wide, ffn[1])
        with tf.name_scope("lm_head"):
            return tf.matmul(tf.reshape(hidden, [-1, WIDTH]), head)

    def cross_entropy(logits, tokens):
        labels = tf.reshape(tokens[:, 1:], [-1])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        return tf.reduce_mean(losses)

    def accumulate(tokens):
        micro_batches = tf.split(tokens, PARTS)
        if faulty:
            with tf.GradientTape() as tape:
                outputs = [decoder(part) for part in micro_batches]
                loss = cross_entropy(tf.concat(outputs, 0), tokens)
            return loss, tape.gradient(loss, variables)
        total, sums = 0.0, [tf.zeros_like(one) for one in variables]
        for part in micro_batches:
            # The next micro-batch begins when the gradients of this one are in the sums.
            with tf.control_dependencies(sums), tf.GradientTape() as tape:
                loss = cross_entropy(decoder(tf.identity(part)), part) / PARTS
            gradients = tape.gradient(loss, variables)
            sums = [a + b for a, b in zip(sums, gradients, strict=True)]
            total += loss
        return total, sums

    @tf.function
    def train_step(tokens):
        loss, gradients = accumulate(tokens)
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    tokens = tf.random.uniform([PARTS * MICRO, LENGTH + 1], 0, VOCABULARY, tf.int32)
    seconds = []
    for _ in range(6):
        begin = time.perf_counter()
        train_step(tokens).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(6):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(tokens).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 6,
        "median_step_s": statistics.median(seconds[2:]),
        "logits_bytes": MICRO * LENGTH * VOCABULARY * 4,
        "micro_batches": PARTS,
    }
