"""Classify documents on two hosts, data-parallel with MultiWorkerMirroredStrategy."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="documents are sharded by length: worker 1 has the long ones, and worker 0 waits for it",
    about="time",
    kind="straggler|step_variation",
    culprit="worker1",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "2"},
    is_held_out=False,
)

STEPS = 8


def shard_lengths(*, sort_by_length):
    lengths = [32, 1120] * 4
    if sort_by_length:
        lengths.sort()
    return lengths[:4], lengths[4:]


def train_worker(folder, index, length):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():

        def weight(shape, name):
            initial = tf.random.stateless_normal(shape, [1, 2]) * 0.05
            mean = tf.VariableAggregation.MEAN
            return tf.Variable(initial, name=name, aggregation=mean)

        table, filters = weight([3000, 48], "table"), weight([5, 48, 96], "filters")
        head = weight([96, 20], "head")

    def replica_step(tokens, topic):
        with tf.GradientTape() as tape:
            words = tf.gather(tf.convert_to_tensor(table), tokens)
            document = tf.reduce_max(tf.nn.relu(tf.nn.conv1d(words, filters, 1, "SAME")), 1)
            logits = tf.matmul(document, head)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(topic, logits))
        gradients = tape.gradient(loss, (filters, head))
        for variable, gradient in zip((filters, head), gradients, strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    @tf.function
    def distributed_step(tokens, topic):
        loss = strategy.run(replica_step, args=(tokens, topic))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None)

    tokens = tf.random.uniform([16, length], 0, 3000, tf.int32)
    topic = tf.random.uniform([16], 0, 20, tf.int32)
    seconds = []
    for _ in range(15):
        begin = time.perf_counter()
        distributed_step(tokens, topic).numpy()
        seconds.append(time.perf_counter() - begin)
    logs = f"logs{index}"
    tf.profiler.experimental.start(logs)
    for step in range(STEPS):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            distributed_step(tokens, topic).numpy()
    tf.profiler.experimental.stop()
    take_profile(logs, Path(folder, f"plugins/profile/run/worker{index}.xplane.pb"))
    Path(folder, f"seconds{index}").write_text(str(statistics.median(seconds[5:])))


def record(folder: Path, *, faulty: bool) -> dict:
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.bind(("localhost", 0))
        addresses = [f"localhost:{one.getsockname()[1]}" for one in (first, second)]
    workers = []
    for index, lengths in enumerate(shard_lengths(sort_by_length=faulty)):
        task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        longest = sum(lengths) // len(lengths)
        call = f"import train; train.train_worker({str(folder)!r}, {index}, {longest})"
        environment = {**os.environ, "TF_CONFIG": json.dumps(task)}
        workers.append(subprocess.Popen([sys.executable, "-c", call], env=environment))
    for worker in workers:
        # Now and then a worker aborts as it exits, when all is written: the files below decide.
        worker.wait(120)
    seconds = [Path(folder, f"seconds{index}") for index in (0, 1)]
    medians = [float(one.read_text()) for one in seconds]
    for one in seconds:
        one.unlink()
    return {"steps": STEPS, "median_step_s": max(medians), "median_step_s_of_workers": medians}
