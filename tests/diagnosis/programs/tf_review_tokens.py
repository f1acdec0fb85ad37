"""Sentiment of short reviews: hashed words, averaged embeddings and a dense layer."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the model lowers, cleans, splits and hashes the text of the reviews in each step",
    about="time",
    kind="expensive_op|input_bound|host_bound",
    culprit="StringLower|RegexReplace|StringSplit|StringToHashBucket|tokenize",
)

WORDS = "the a film plot was Great, dull; and <br/> actors! very not slow moving I loved it".split()


class Tokenizer:
    def __init__(self, tf, buckets=5000, width=40):
        self.tf, self.buckets, self.width = tf, buckets, width

    def __call__(self, texts):
        tf = self.tf
        with tf.name_scope("tokenize"):
            clean = tf.strings.regex_replace(tf.strings.lower(texts), r"<[^>]+>", " ")
            clean = tf.strings.regex_replace(clean, r"[^a-z ]+", "")
            words = tf.strings.split(clean)
            ids = tf.strings.to_hash_bucket_fast(words, self.buckets)
            return ids.to_tensor(shape=[None, self.width])


class Sentiment:
    def __init__(self, tf, tokenizer=None):
        self.tf = tf
        self.tokenizer = tokenizer
        self.table = tf.Variable(tf.random.normal([5000, 8], stddev=0.1), name="table")
        self.hidden = tf.Variable(tf.random.normal([8, 256], stddev=0.1), name="hidden")
        self.kernel = tf.Variable(tf.random.normal([256, 1], stddev=0.1), name="kernel")

    def __call__(self, reviews):
        tf = self.tf
        ids = self.tokenizer(reviews) if self.tokenizer else reviews
        review = tf.reduce_mean(tf.gather(self.table, ids), 1)
        return tf.matmul(tf.nn.relu(tf.matmul(review, self.hidden)), self.kernel)[:, 0]


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(8)
    texts = [" ".join(rng.choice(WORDS, rng.integers(60, 100))) for _ in range(1024)]
    labels = rng.integers(0, 2, 1024).astype("float32")
    tokenizer = Tokenizer(tf)
    # Without a tokenizer of its own the model takes ids, made once for the whole corpus.
    reviews = tf.constant(texts) if faulty else tokenizer(tf.constant(texts))
    model = Sentiment(tf, tokenizer if faulty else None)
    dataset = tf.data.Dataset.from_tensor_slices((reviews, labels)).repeat()
    iterator = iter(dataset.batch(256).prefetch(2))

    @tf.function(reduce_retracing=True)
    def train_batch(batch, label):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=model(batch))
            )
        slices, *dense = tape.gradient(loss, [model.table, model.hidden, model.kernel])
        model.table.scatter_sub(tf.IndexedSlices(slices.values, slices.indices))
        model.hidden.assign_sub(dense[0])
        model.kernel.assign_sub(dense[1])
        return loss

    seconds = []
    for _ in range(20):
        begin = time.perf_counter()
        train_batch(*next(iterator)).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(8):
        with tf.profiler.experimental.Trace("update", step_num=step, _r=1):
            train_batch(*next(iterator)).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {"steps": 8, "median_step_s": statistics.median(seconds[4:])}
