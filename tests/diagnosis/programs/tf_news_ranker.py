"""Rank news articles: an embedding of many articles, pooled reading histories, a dense scorer."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the gradient of the embedding table is made dense to clip it",
    about="memory",
    kind="huge_temporary|redundant_copy",
    culprit="UnsortedSegmentSum|clip|article_table",
    savings="temporary",
    magnitude=40000 * 32 * 4,
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
)

ARTICLES, WIDTH, HISTORY = 40000, 32, 10


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    article_table = tf.Variable(
        tf.random.uniform([ARTICLES, WIDTH], -0.05, 0.05), name="article_table"
    )
    scorer = tf.Variable(tf.random.normal([2 * WIDTH, 1], stddev=0.1), name="scorer")

    def clip_gradients(gradients, norm):
        with tf.name_scope("clip"):
            if faulty:
                return [tf.clip_by_norm(tf.convert_to_tensor(one), norm) for one in gradients]
            clipped, _ = tf.clip_by_global_norm(gradients, norm)
            return clipped

    def descend(variable, gradient, rate):
        if isinstance(gradient, tf.IndexedSlices):
            variable.scatter_sub(tf.IndexedSlices(rate * gradient.values, gradient.indices))
        else:
            variable.assign_sub(rate * gradient)

    @tf.function
    def train_step(history, candidate, clicked):
        with tf.GradientTape() as tape:
            reader = tf.reduce_mean(tf.nn.embedding_lookup(article_table, history), axis=1)
            article = tf.nn.embedding_lookup(article_table, candidate)
            score = tf.matmul(tf.concat([reader, article], 1), scorer)[:, 0]
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=score)
            )
        gradients = tape.gradient(loss, [article_table, scorer])
        for variable, gradient in zip(
            [article_table, scorer], clip_gradients(gradients, 1.0), strict=True
        ):
            descend(variable, gradient, 0.1)
        return loss

    def clicks():
        history = tf.random.uniform([256, HISTORY], 0, ARTICLES, tf.int32)
        candidate = tf.random.uniform([256], 0, ARTICLES, tf.int32)
        return history, candidate, tf.round(tf.random.uniform([256]))

    dataset = tf.data.Dataset.from_tensors(0).repeat().map(lambda _: clicks()).prefetch(2)
    batches = iter(dataset)
    seconds = []
    for _ in range(12):
        begin = time.perf_counter()
        train_step(*next(batches)).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(8):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(*next(batches)).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 8,
        "median_step_s": statistics.median(seconds[3:]),
        "table_bytes": ARTICLES * WIDTH * 4,
    }
