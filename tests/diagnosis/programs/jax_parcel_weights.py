"""Predict the weight of parcels from small depth images, in JAX."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="collate moves each sample to the device by itself, and stacks the device arrays",
    about="time",
    kind=r"host_bound|input_bound|python_work|tiny_ops|launch_bound|idle_between_steps",
    culprit=r"\bcollate\b|train\.py:2[0-4]",
    line=r"\bcollate\b|train\.py:2[0-4]",
    round=7,
)


def collate(jnp, np, samples):
    """A batch of a list of samples."""
    images = jnp.stack([jnp.asarray(image) for image, _ in samples])
    return images, np.array([weight for _, weight in samples])


def batch_in_numpy(np, samples):
    """A batch of a list of samples, in NumPy."""
    images = np.stack([image for image, _ in samples])
    return images, np.array([weight for _, weight in samples])


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(6)
    parcels = [
        (rng.random(24 * 24, np.float32), np.float32(rng.random() * 20)) for _ in range(1000)
    ]

    def normal(*shape):
        return jnp.asarray(rng.standard_normal(shape, np.float32) / shape[0] ** 0.5)

    params = {"a": normal(576, 768), "b": normal(768, 768), "c": normal(768, 1)}

    def loss_fn(params, images, weights):
        x = jax.nn.relu(images @ params["a"])
        x = jax.nn.relu(x @ params["b"])
        return jnp.mean(jnp.abs((x @ params["c"])[:, 0] - weights))

    def train_step(params, images, weights):
        loss, grads = jax.value_and_grad(loss_fn)(params, images, weights)
        return jax.tree.map(lambda weight, grad: weight - 0.001 * grad, params, grads), loss

    train_step = jax.jit(train_step, donate_argnums=0)
    seconds = []

    def train(steps):
        nonlocal params
        for step in range(steps):
            begin = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                samples = [parcels[i] for i in rng.integers(0, len(parcels), 72)]
                batch = collate(jnp, np, samples) if faulty else batch_in_numpy(np, samples)
                params, loss = train_step(params, *batch)
                loss.block_until_ready()
            seconds.append(time.perf_counter() - begin)

    train(15)
    jax.profiler.start_trace(folder / "logs")
    train(3)
    jax.profiler.stop_trace()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    return {"steps": 3, "median_step_s": float(np.median(seconds[5:15]))}
