"""A melody model: two blocks of causal attention with relative positions, trained on notes."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

NOTES, LENGTH, WIDTH, HEADS, BATCH = 128, 128, 256, 2, 4

PAIR = Pair(
    fault="relative keys are looked up for each pair of positions: length x length x width",
    about="memory",
    kind="huge_temporary|accumulated_in_step|one_pass|redundant_copy",
    culprit="relative|128,\\s*128,\\s*128|16384,\\s*128",
    savings="temporary|recompute|precision",
    magnitude=LENGTH * LENGTH * (WIDTH // HEADS) * 4,
    tolerance=3.1,  # the rows of one layer, and of the other, and their gradients
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    is_held_out=True,
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)

    def weight(*shape):
        return tf.Variable(tf.random.normal(shape, stddev=shape[0] ** -0.5))

    def relative_scores(q, table):
        """The score of each query with the key of its distance from each other position."""
        with tf.name_scope("relative"):
            if faulty:
                positions = tf.range(LENGTH)
                distance = tf.maximum(positions[:, None] - positions[None], 0)
                keys = tf.gather(table, distance)
                return tf.einsum("bhqd,qkd->bhqk", q, keys)
            scores = tf.einsum("bhqd,rd->bhqr", q, tf.reverse(table, [0]))
            padded = tf.pad(scores, [[0, 0], [0, 0], [0, 0], [1, 0]])
            shifted = tf.reshape(padded, [BATCH, HEADS, LENGTH + 1, LENGTH])
            return shifted[:, :, 1:]

    class Block(tf.Module):
        def __init__(self, name):
            super().__init__(name=name)
            self.qkv, self.out = weight(WIDTH, 3 * WIDTH), weight(WIDTH, WIDTH)
            self.up, self.down = weight(WIDTH, 2 * WIDTH), weight(2 * WIDTH, WIDTH)
            self.distances = weight(LENGTH, WIDTH // HEADS)

        @tf.Module.with_name_scope
        def __call__(self, x):
            heads = tf.reshape(x @ self.qkv, [BATCH, LENGTH, 3, HEADS, WIDTH // HEADS])
            q, k, v = tf.unstack(tf.transpose(heads, [2, 0, 3, 1, 4]))
            scores = tf.matmul(q, k, transpose_b=True) + relative_scores(q, self.distances)
            mask = tf.linalg.band_part(tf.ones([LENGTH, LENGTH]), -1, 0)
            shares = tf.nn.softmax(scores / (WIDTH // HEADS) ** 0.5 - 1e9 * (1.0 - mask))
            mixed = tf.transpose(tf.matmul(shares, v), [0, 2, 1, 3])
            x += tf.reshape(mixed, [BATCH, LENGTH, WIDTH]) @ self.out
            return x + tf.nn.relu(x @ self.up) @ self.down

    class MelodyModel(tf.Module):
        def __init__(self):
            super().__init__(name="melody")
            self.embedding, self.blocks = weight(NOTES, WIDTH), [Block("block0"), Block("block1")]

        def __call__(self, notes):
            x = tf.gather(self.embedding, notes)
            for block in self.blocks:
                x = block(x)
            return tf.matmul(x, self.embedding, transpose_b=True)

    model = MelodyModel()

    @tf.function
    def train_step(notes):
        with tf.GradientTape() as tape:
            logits = model(notes[:, :-1])
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(notes[:, 1:], logits)
            loss = tf.reduce_mean(loss)
        variables = model.trainable_variables
        for variable, grad in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.05 * tf.convert_to_tensor(grad))
        return loss

    notes = tf.random.uniform([BATCH, LENGTH + 1], 0, NOTES, tf.int32)
    seconds = []
    for _ in range(12):
        begin = time.perf_counter()
        train_step(notes).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(7):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            loss = train_step(notes)
            loss.numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 7,
        "median_step_s": statistics.median(seconds[3:]),
        "relative_key_bytes": LENGTH * (LENGTH if faulty else 1) * WIDTH // HEADS * 4,
    }
