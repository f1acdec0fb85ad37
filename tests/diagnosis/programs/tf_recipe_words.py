"""Find the cuisine of recipes from the mean of their ingredients' vectors."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

RECIPES, LENGTH, VOCABULARY, WIDTH, CUISINES = 48, 20, 6000, 64, 20

PAIR = Pair(
    fault="ingredients become one-hot rows as long as the vocabulary, to multiply with the table",
    about="memory",
    kind="huge_temporary",
    culprit=r"one_hot|OneHot|48,\s*20,\s*6000|960,\s*6000",
    savings="temporary|recompute|batch|precision",
    magnitude=RECIPES * LENGTH * VOCABULARY * 4,
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    normal = tf.random.normal
    table = tf.Variable(normal([VOCABULARY, WIDTH], stddev=0.1), name="table")
    hidden = tf.Variable(normal([WIDTH, 1024], stddev=0.1), name="hidden")
    second = tf.Variable(normal([1024, 1024], stddev=0.03), name="second")
    output = tf.Variable(normal([1024, CUISINES], stddev=0.03), name="output")

    def embed(ingredients):
        if faulty:
            rows = tf.one_hot(ingredients, VOCABULARY)
            return tf.tensordot(rows, table, 1)
        return tf.gather(table, ingredients)

    def classify(ingredients):
        with tf.name_scope("embed"):
            x = tf.reduce_mean(embed(ingredients), axis=1)
        with tf.name_scope("classify"):
            x = tf.nn.relu(tf.matmul(x, hidden))
            return tf.matmul(tf.nn.relu(tf.matmul(x, second)), output)

    @tf.function
    def train_step(ingredients, cuisines):
        with tf.GradientTape() as tape:
            logits = classify(ingredients)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=cuisines, logits=logits)
            loss = tf.reduce_mean(loss)
        of_table, *of_layers = tape.gradient(loss, [table, hidden, second, output])
        if isinstance(of_table, tf.IndexedSlices):
            table.scatter_sub(tf.IndexedSlices(0.1 * of_table.values, of_table.indices))
        else:
            table.assign_sub(0.1 * of_table)
        for layer, gradient in zip((hidden, second, output), of_layers, strict=True):
            layer.assign_sub(0.1 * gradient)
        return loss

    def batch():
        ingredients = tf.random.uniform([RECIPES, LENGTH], 0, VOCABULARY, tf.int32)
        return ingredients, tf.random.uniform([RECIPES], 0, CUISINES, tf.int32)

    seconds = []
    for _ in range(12):
        ingredients, cuisines = batch()
        begin = time.perf_counter()
        train_step(ingredients, cuisines).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for step in range(6):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(*batch()).numpy()
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 6,
        "median_step_s": statistics.median(seconds[3:]),
        "weight_bytes": 4 * (VOCABULARY * WIDTH + 1024 * (WIDTH + 1024 + CUISINES)),
        "one_hot_bytes": RECIPES * LENGTH * VOCABULARY * 4 if faulty else 0,
    }
