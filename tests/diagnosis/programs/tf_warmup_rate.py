"""Train a two-tower recommender with a trainer class that warms its learning rate up."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="the learning rate is a Python number, a new one each step, and each is traced anew",
    about="time",
    kind="recompilation|retrac",
    culprit="update_towers",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
)


class TwoTowerTrainer:
    """Users and items in one space; SGD with a linear warm-up and cosine decay."""

    def __init__(self, tf, users, items, width=64):
        self.tf = tf
        self.user_table = tf.Variable(tf.random.normal([users, width], stddev=0.1), name="users")
        self.item_table = tf.Variable(tf.random.normal([items, width], stddev=0.1), name="items")
        self.towers = [
            tf.keras.Sequential(
                [tf.keras.layers.Dense(256, "relu"), tf.keras.layers.Dense(width)], name=name
            )
            for name in ("user_tower", "item_tower")
        ]
        self.global_step = 0
        self.update_towers = tf.function(self.update_towers)

    def learning_rate(self, peak=0.05, warmup=100):
        self.global_step += 1
        return peak * min(1.0, self.global_step / warmup)

    def update_towers(self, user_ids, item_ids, rate):
        tf = self.tf
        with tf.GradientTape() as tape:
            user = self.towers[0](tf.gather(self.user_table, user_ids))
            item = self.towers[1](tf.gather(self.item_table, item_ids))
            scores = tf.matmul(user, item, transpose_b=True)
            labels = tf.range(tf.shape(scores)[0])
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
            )
        weights = [*self.towers[0].trainable_weights, *self.towers[1].trainable_weights]
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(rate * gradient)
        return loss


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    trainer = TwoTowerTrainer(tf, users=4000, items=2000)

    def one_step():
        user_ids = tf.random.uniform([512], 0, 4000, tf.int32)
        item_ids = tf.random.uniform([512], 0, 2000, tf.int32)
        rate = trainer.learning_rate()
        return trainer.update_towers(user_ids, item_ids, rate if faulty else tf.constant(rate))

    seconds = []
    for _ in range(15):
        begin = time.perf_counter()
        one_step()
        seconds.append(time.perf_counter() - begin)
    profiler = tf.profiler.experimental
    profiler.start("logs", profiler.ProfilerOptions(host_tracer_level=2))
    for step in range(8):
        with profiler.Trace("train", step_num=step, _r=1):
            one_step().numpy()
    profiler.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 8,
        "median_step_s": statistics.median(seconds[3:]),
        "traces": trainer.update_towers.experimental_get_tracing_count(),
    }
