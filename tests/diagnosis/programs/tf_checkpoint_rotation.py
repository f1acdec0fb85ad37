"""Train a wide MLP on synthetic sensor data and save checkpoints, with arguments and a manager."""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="a checkpoint of all weights is saved at each fifth step, while training waits",
    about="time",
    kind="step_variation|expensive_op|host_bound",
    culprit="SaveV2|MergeV2Checkpoints|checkpoint",
    magnitude=5,
    environment={"TF_ENABLE_ONEDNN_OPTS": "0"},
    is_held_out=False,
)


def arguments(text=()):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--save-steps", type=int, default=500)
    return parser.parse_args(list(text))


def record(folder: Path, *, faulty: bool) -> dict:
    import tensorflow as tf

    args = arguments(["--save-steps", "5"] if faulty else [])
    layers = [tf.keras.layers.Dense(args.width, "relu") for _ in range(2)]
    net = tf.keras.Sequential([*layers, tf.keras.layers.Dense(1)])
    opt = tf.keras.optimizers.SGD(1e-3, momentum=0.9)
    net.build([None, args.width])
    opt.build(net.trainable_variables)
    ckpt = tf.train.Checkpoint(net=net, opt=opt, step=tf.Variable(0, dtype=tf.int64))
    manager = tf.train.CheckpointManager(ckpt, "checkpoints", max_to_keep=2)

    @tf.function(jit_compile=False)
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x)[:, 0] - y))
        grads = tape.gradient(loss, net.trainable_variables)
        opt.apply_gradients(zip(grads, net.trainable_variables, strict=True))
        ckpt.step.assign_add(1)
        return loss

    x = tf.random.normal([args.batch_size, args.width])
    y = tf.reduce_sum(x, 1)

    def iteration():
        loss = train_step(x, y)
        if ckpt.step.numpy() % args.save_steps == 0:
            manager.save()
        return loss

    seconds = []
    for _ in range(20):
        begin = time.perf_counter()
        iteration()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.start("logs")
    for _ in range(args.steps):
        with tf.profiler.experimental.Trace("train", step_num=int(ckpt.step), _r=1):
            iteration()
    tf.profiler.experimental.stop()
    manager.save()
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": args.steps,
        "median_step_s": statistics.median(seconds[3:]),
        "mean_step_s": statistics.mean(seconds[3:]),
        "max_step_s": max(seconds[3:]),
        "checkpoint_bytes": sum(v.numpy().nbytes for v in [*net.variables, *opt.variables]),
    }
