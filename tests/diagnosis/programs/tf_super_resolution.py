"""Sharpen images on two hosts, data-parallel; the chief writes previews of what it has learned."""

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
    fault="the chief, worker 0, encodes previews as PNG files in each step, and worker 1 waits",
    about="time",
    kind="straggler|step_variation|expensive_op|host_bound",
    culprit="worker0|EncodePng|WriteFile|preview",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPP_MIN_LOG_LEVEL": "2"},
    is_held_out=True,
    round=2,
)

STEPS, SIDE = 8, 24


def build(tf):
    def filters(size, a, b):
        start = tf.random.stateless_normal([size, size, a, b], [size, b]) * 0.05
        return tf.Variable(start, aggregation=tf.VariableAggregation.MEAN)

    return [filters(5, 3, 24), filters(3, 24, 24), filters(3, 24, 12)]


def upscale(tf, layers, small):
    x = small
    for kernel in layers[:-1]:
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
    return tf.nn.depth_to_space(tf.nn.conv2d(x, layers[-1], 1, "SAME"), 2)


def write_previews(tf, images, number):
    pixels = tf.image.convert_image_dtype(tf.clip_by_value(images, 0.0, 1.0), tf.uint8)
    grid = tf.image.resize(pixels, [4 * SIDE, 4 * SIDE], "nearest")
    for index, one in enumerate(grid):
        png = tf.io.encode_png(one)
        tf.io.write_file(f"previews/{number}_{index}.png", png)


def train(folder, index, preview_every):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        layers = build(tf)

    def replica_step(small, large):
        with tf.GradientTape() as tape:
            output = upscale(tf, layers, small)
            loss = tf.reduce_mean(tf.abs(output - large))
        for kernel, gradient in zip(layers, tape.gradient(loss, layers), strict=True):
            kernel.assign_sub(0.01 * gradient)
        return loss, output

    @tf.function
    def distributed_step(small, large):
        loss, output = strategy.run(replica_step, args=(small, large))
        return strategy.reduce(tf.distribute.ReduceOp.MEAN, loss, axis=None), output

    large = tf.random.stateless_uniform([16, 2 * SIDE, 2 * SIDE, 3], [index, 3])
    small = tf.nn.avg_pool2d(large, 2, 2, "VALID")

    def train_step(number):
        loss, output = distributed_step(small, large)
        if index == 0 and number % preview_every == 0:
            write_previews(tf, output[:8], number)
        return loss.numpy()

    seconds = []
    for number in range(1, 16):
        begin = time.perf_counter()
        train_step(number)
        seconds.append(time.perf_counter() - begin)
    logs = f"logs{index}"
    tf.profiler.experimental.start(logs)
    for number in range(16, 16 + STEPS):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            train_step(number)
    tf.profiler.experimental.stop()
    take_profile(logs, Path(folder, f"plugins/profile/run/worker{index}.xplane.pb"))
    Path(folder, f"seconds{index}").write_text(str(statistics.median(seconds[5:])))


def record(folder: Path, *, faulty: bool) -> dict:
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.bind(("localhost", 0))
        addresses = [f"localhost:{one.getsockname()[1]}" for one in (first, second)]
    workers = []
    for index in (0, 1):
        task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        call = f"import train; train.train({str(folder)!r}, {index}, {1 if faulty else 500})"
        environment = {**os.environ, "TF_CONFIG": json.dumps(task)}
        workers.append(subprocess.Popen([sys.executable, "-c", call], env=environment))
    for worker in workers:
        worker.wait(120)  # a worker may abort as it exits, when all is written
    seconds = [Path(folder, f"seconds{index}") for index in (0, 1)]
    medians = [float(one.read_text()) for one in seconds]
    for one in seconds:
        one.unlink()
    return {"steps": STEPS, "median_step_s": max(medians), "median_step_s_of_workers": medians}
