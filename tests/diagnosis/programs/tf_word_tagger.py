"""Tag the words of sentences: causal features, and a loss over the positions of a sentence."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="scores and loss are computed by a while loop over positions, of small ops",
    about="time",
    kind="tiny_ops|launch_bound|host_bound|unfused_elementwise|expensive_op",
    culprit="while|sentence_loss",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    is_held_out=True,
    round=2,
)

SENTENCES, LENGTH, WORDS, WIDTH, TAGS = 48, 36, 3000, 96, 48


class Tagger:
    def __init__(self, tf):
        self.tf = tf
        normal = tf.random.normal
        self.words = tf.Variable(normal([WORDS, WIDTH], stddev=0.1), name="words")
        self.context = tf.Variable(normal([3, WIDTH, WIDTH], stddev=0.05), name="context")
        self.output = tf.Variable(normal([WIDTH, TAGS], stddev=0.1), name="output")

    def features(self, sentences):
        tf = self.tf
        x = tf.gather(self.words, sentences)
        x = tf.pad(x, [[0, 0], [2, 0], [0, 0]])
        return tf.nn.relu(tf.nn.conv1d(x, self.context, 1, "VALID"))


def sentence_loss(tf, model, x, tags):
    with tf.name_scope("sentence_loss"):
        total = tf.zeros([SENTENCES])
        for t in tf.range(LENGTH):
            scores = tf.matmul(x[:, t], model.output)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tags[:, t], logits=scores)
            total += tf.where(tags[:, t] > 0, loss, 0.0)
        words = tf.math.count_nonzero(tags, dtype=tf.float32)
        return tf.reduce_sum(total) / words


def sentence_loss_at_once(tf, model, x, tags):
    with tf.name_scope("sentence_loss"):
        scores = tf.matmul(tf.reshape(x, [-1, WIDTH]), model.output)
        tags = tf.reshape(tags, [-1])
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tags, logits=scores)
        words = tf.math.count_nonzero(tags, dtype=tf.float32)
        return tf.reduce_sum(tf.where(tags > 0, loss, 0.0)) / words


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    model = Tagger(tf)
    loss_of = sentence_loss if faulty else sentence_loss_at_once

    @tf.function
    def train_step(sentences, tags):
        with tf.GradientTape() as tape:
            loss = loss_of(tf, model, model.features(sentences), tags)
        slices, *dense = tape.gradient(loss, [model.words, model.context, model.output])
        model.words.scatter_sub(tf.IndexedSlices(0.1 * slices.values, slices.indices))
        model.context.assign_sub(0.1 * dense[0])
        model.output.assign_sub(0.1 * dense[1])
        return loss

    sentences = tf.random.uniform([SENTENCES, LENGTH], 1, WORDS, tf.int32)
    tags = tf.random.uniform([SENTENCES, LENGTH], 0, TAGS, tf.int32)
    seconds = []
    for _ in range(20):
        begin = time.perf_counter()
        train_step(sentences, tags).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(7):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(sentences, tags).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 7, "median_step_s": statistics.median(seconds[4:]), "positions": LENGTH}
