"""Classify point clouds in micro-batches, and save the memory in use before an update, in JAX."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the gradients of six micro-batches are in a list until the last, and then averaged",
    about="memory",
    kind=r"redundant_copy|accumulated_in_step|held_after_use|leak|huge_temporary",
    culprit=r"sum_of_gradients|train\.py:5[3-9]",
    line=r"sum_of_gradients|train\.py:5[3-9]",
    savings=r"older_copy|held|copy|duplicate|accum|release|offload|leak",
    round=5,
)

MICRO_BATCHES = 6


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(17)

    def init(rows, columns):
        return jnp.asarray(rng.standard_normal((rows, columns), np.float32) / rows**0.5)

    params = {"points": init(3, 256), "shape": init(256, 768), "hidden": init(768, 768)}
    params["label"] = init(768, 40)

    def loss_fn(params, clouds, labels):
        x = jax.nn.relu(clouds @ params["points"])
        x = jax.nn.relu(x.max(axis=1) @ params["shape"])
        logits = jax.nn.relu(x @ params["hidden"]) @ params["label"]
        log_probabilities = jax.nn.log_softmax(logits)
        return -jnp.take_along_axis(log_probabilities, labels[:, None], axis=1).mean()

    gradient_of = jax.jit(jax.grad(loss_fn))
    add = jax.jit(lambda total, new: jax.tree.map(jnp.add, total, new), donate_argnums=0)
    add_all = jax.jit(lambda trees: jax.tree.map(lambda *same: sum(same), *trees))

    def descend(params, total):
        rate = 0.1 / MICRO_BATCHES
        return jax.tree.map(lambda weight, slope: weight - rate * slope, params, total)

    descend = jax.jit(descend, donate_argnums=0)

    def sum_of_gradients(params, batches, heap=None):
        """Over all micro-batches."""
        gradients = []
        for clouds, labels in batches:
            gradient = gradient_of(params, clouds, labels)
            if faulty or not gradients:
                gradients.append(gradient)
            else:
                gradients[0] = add(gradients[0], gradient)
            del gradient
        jax.block_until_ready(gradients)
        if heap is not None:
            jax.profiler.save_device_memory_profile(heap)
        in_use.append(sum(array.nbytes for array in jax.live_arrays()))
        return add_all(gradients) if faulty else gradients[0]

    def load_batch():
        clouds = rng.standard_normal((16, 128, 3), np.float32)
        return clouds, rng.integers(0, 40, 16, np.int32)

    in_use, seconds = [], []
    for step in range(6):
        batches = [load_batch() for _ in range(MICRO_BATCHES)]
        heap = folder / "memory.pprof.pb" if step == 5 else None
        begin = time.perf_counter()
        params = descend(params, sum_of_gradients(params, batches, heap))
        jax.block_until_ready(params)
        seconds.append(time.perf_counter() - begin)
    return {
        "median_step_s": float(np.median(seconds[1:5])),
        "bytes_in_use": in_use[-1],
        "weight_bytes": sum(array.nbytes for array in jax.tree.leaves(params)),
        "gradients": MICRO_BATCHES if faulty else 1,
    }
