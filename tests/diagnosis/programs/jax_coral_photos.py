"""Find the kind of coral in photos, with a convolution over their features."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PHOTOS, SIDE, CHANNELS, FILTERS, KERNEL, KINDS = 16, 32, 8, 16, 5, 10

PAIR = Pair(
    fault="a convolution is written as the patches of all pixels, joined, times a matrix",
    about="memory",
    kind=r"huge_temporary|redundant_copy|accumulated_in_step",
    culprit=r"convolve|concatenate|16,\s*32,\s*32,\s*200|16384,\s*200|train\.py:3[6-9]",
    line=r"convolve|train\.py:3[0-9]",
    savings=r"temporary|precision|batch|fuse|recompute|pieces",
    magnitude=PHOTOS * SIDE * SIDE * KERNEL * KERNEL * CHANNELS * 4,
    tolerance=1.1,  # the patches, or these and their gradient
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np

    def convolve(x, kernel):
        if not faulty:
            return jax.lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        edge = KERNEL // 2
        x = jnp.pad(x, [(0, 0), (edge, edge), (edge, edge), (0, 0)])
        shifts = [(i, j) for i in range(KERNEL) for j in range(KERNEL)]
        patches = jnp.concatenate([x[:, i : i + SIDE, j : j + SIDE] for i, j in shifts], axis=-1)
        return patches @ kernel.reshape(-1, FILTERS)

    def loss_fn(params, photos, kinds):
        x = jax.nn.relu(photos @ params["colour"])
        x = jax.nn.relu(convolve(x, params["kernel"]))
        x = x.reshape(PHOTOS, SIDE // 4, 4, SIDE // 4, 4, FILTERS).max(axis=(2, 4))
        logits = x.reshape(PHOTOS, -1) @ params["output"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), kinds[:, None], 1).mean()

    @jax.jit
    def train_step(params, photos, kinds):
        loss, grads = jax.value_and_grad(loss_fn)(params, photos, kinds)
        return jax.tree.map(lambda weight, grad: weight - 0.05 * grad, params, grads), loss

    rng = np.random.default_rng(6)
    normal = rng.standard_normal
    params = {
        "colour": jnp.asarray(normal((3, CHANNELS), np.float32)),
        "kernel": jnp.asarray(normal((KERNEL, KERNEL, CHANNELS, FILTERS), np.float32) / 14),
        "output": jnp.asarray(normal((SIDE * SIDE // 16 * FILTERS, KINDS), np.float32) / 32),
    }
    example = (np.zeros((PHOTOS, SIDE, SIDE, 3), np.float32), np.zeros(PHOTOS, np.int32))
    needs = train_step.lower(params, *example).compile().memory_analysis()
    seconds = []
    for step in range(14):
        if step == 9:
            jax.profiler.start_trace(folder / "logs")
        photos = rng.random((PHOTOS, SIDE, SIDE, 3), np.float32)
        kinds = rng.integers(0, KINDS, PHOTOS, np.int32)
        begin = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            params, loss = train_step(params, photos, kinds)
            loss.block_until_ready()
        seconds.append(time.perf_counter() - begin)
    jax.profiler.stop_trace()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    return {
        "steps": 5,
        "median_step_s": float(np.median(seconds[2:9])),
        "temporary_bytes": needs.temp_size_in_bytes,
    }
