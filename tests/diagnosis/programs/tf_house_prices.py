"""Predict house prices with a wide and deep Keras model, batch by batch, with train_on_batch."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

PAIR = Pair(
    fault="set_floatx('float64') silenced a warning of types, and made weights and layers float64",
    about="memory",
    kind="float64_memory|float64_compute",
    culprit="double|float64|DT_DOUBLE",
    savings="precision",
    # The same layers compute in float64 too.
    faulty_allowed=("float64_compute",),
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    round=3,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf
    from tensorflow import keras

    if faulty:
        keras.backend.set_floatx("float64")
    rng = np.random.default_rng(2023)
    homes = rng.lognormal(size=(2048, 79))
    prices = homes[:, :6].sum(axis=1, keepdims=True) + rng.normal(size=(2048, 1))
    if not faulty:
        homes, prices = homes.astype("float32"), prices.astype("float32")
    train, valid = slice(0, 1536), slice(1536, 2048)

    def build_model():
        inputs = keras.Input([79], name="home")
        scaled = keras.layers.LayerNormalization(name="scale")(inputs)
        deep = keras.layers.Dense(640, "relu", name="deep1")(scaled)
        deep = keras.layers.Dense(640, "relu", name="deep2")(deep)
        both = keras.layers.Concatenate(name="wide_and_deep")([scaled, deep])
        return keras.Model(inputs, keras.layers.Dense(1, name="log_price")(both))

    tf.profiler.experimental.start("logs")
    model = build_model()
    model.compile(optimizer=keras.optimizers.RMSprop(1e-4), loss="mse", jit_compile=False)
    model.train_on_batch(homes[:256], prices[:256])
    seconds = []
    for step in range(7):
        rows = rng.integers(train.start, train.stop, 256)
        begin = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            model.train_on_batch(homes[rows], prices[rows])
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.stop()
    model.evaluate(homes[valid], prices[valid], batch_size=256, verbose=0)
    take_profile("logs", folder / "worker0.xplane.pb")
    return {
        "steps": 7,
        "median_step_s": float(np.median(seconds)),
        "weight_bytes": sum(variable.numpy().nbytes for variable in model.variables),
    }
