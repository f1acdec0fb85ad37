"""A small forecasting model in a module with hooks; TensorFlow logs its memory (log_memory)."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the outputs of all training steps are held for a hook at the end of the epoch",
    about="memory",
    kind="leak",
    culprit="forecast",
    savings="older_copy|leak|release",
    magnitude=256 * 512 * 4,
    environment={
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "TF_CPU_ALLOCATOR_USE_BFC": "1",
        "TF_CPP_VMODULE": "log_memory=2",
        "TF_CPP_MIN_LOG_LEVEL": "0",
    },
)


class ForecastModule:
    def __init__(self, tf, *, hold_outputs):
        self.tf, self.hold_outputs = tf, hold_outputs
        self.w_in = tf.Variable(tf.random.normal([64, 128], stddev=0.1), name="w_in")
        self.w_out = tf.Variable(tf.random.normal([128, 512], stddev=0.1), name="w_out")
        self.step_outputs = []
        self.training_step = tf.function(self.training_step)

    def training_step(self, past, future):
        tf = self.tf
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(past, self.w_in))
            forecast = tf.matmul(hidden, self.w_out, name="forecast")
            loss = tf.reduce_mean(tf.abs(forecast - future))
        for weight, gradient in zip(
            (self.w_in, self.w_out), tape.gradient(loss, (self.w_in, self.w_out)), strict=True
        ):
            weight.assign_sub(0.1 * gradient)
        return {"loss": loss, "forecast": forecast}

    def on_train_batch_end(self, outputs):
        if not self.hold_outputs:
            outputs = {"loss": float(outputs["loss"])}
        self.step_outputs.append(outputs)

    def on_train_epoch_end(self):
        return sum(float(one["loss"]) for one in self.step_outputs) / len(self.step_outputs)


def fit(module, batches):
    seconds = []
    for past, future in batches:
        begin = time.perf_counter()
        module.on_train_batch_end(module.training_step(past, future))
        seconds.append(time.perf_counter() - begin)
    module.on_train_epoch_end()
    return seconds


def record(folder: Path, *, faulty: bool) -> dict:
    # What `python train.py 2> memory.log` writes.
    terminal = os.dup(2)
    log = os.open(folder / "memory.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 2)
    import tensorflow as tf

    module = ForecastModule(tf, hold_outputs=faulty)
    past, future = tf.random.normal([256, 64]), tf.random.normal([256, 512])
    seconds = fit(module, ((past, future) for _ in range(20)))
    os.dup2(terminal, 2)
    os.close(log)
    return {
        "steps": 20,
        "median_step_s": statistics.median(seconds[2:]),
        "forecast_bytes_per_step": 256 * 512 * 4 if faulty else 0,
    }
