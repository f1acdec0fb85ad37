"""Predict the colour of mixtures of pigments from all products of two shares."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

MIXTURES, PIGMENTS, FACTORS = 256, 192, 32

PAIR = Pair(
    fault="the products of all pairs of pigments are a table, mixtures x pigments x pigments",
    about="memory",
    kind=r"huge_temporary|peak_in_one_step",
    culprit=r"all_products|256,\s*192,\s*192|256,\s*36864",
    line=r"all_products|train\.py:2[4-7]",
    savings=r"temporary|batch|pieces|precision|recompute|program|fuse",
    magnitude=4 * MIXTURES * PIGMENTS**2,
    round=7,
)


def all_products(shares, weights):
    """A linear layer on the products of all pairs."""
    products = shares[:, :, None] * shares[:, None, :]
    return products.reshape(len(shares), -1) @ weights


def factored_products(shares, factors):
    """The same with weights that are a product of two factors."""
    return (shares @ factors["left"]) * (shares @ factors["right"])


def record(folder: Path, *, faulty: bool) -> dict:
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(9)

    def normal(*shape):
        return jnp.asarray(rng.standard_normal(shape, np.float32) / shape[0] ** 0.5)

    params = {"hidden": normal(PIGMENTS, 1536), "second": normal(1536, 1024)}
    params["colour"] = normal(1024 + FACTORS, 3)
    if faulty:
        params["pairs"] = normal(PIGMENTS**2, FACTORS)
    else:
        params["pairs"] = {"left": normal(PIGMENTS, FACTORS), "right": normal(PIGMENTS, FACTORS)}
    interact = all_products if faulty else factored_products

    def loss_fn(params, shares, colours):
        x = jax.nn.relu(shares @ params["hidden"])
        x = jax.nn.relu(x @ params["second"])
        x = jnp.concatenate([x, interact(shares, params["pairs"])], axis=1)
        return jnp.mean((x @ params["colour"] - colours) ** 2)

    def train_step(params, shares, colours):
        loss, grads = jax.value_and_grad(loss_fn)(params, shares, colours)
        return jax.tree.map(lambda weight, grad: weight - 0.01 * grad, params, grads), loss

    train_step = jax.jit(train_step, donate_argnums=0)
    shares = rng.random((4, MIXTURES, PIGMENTS), np.float32)
    colours = rng.random((4, MIXTURES, 3), np.float32)
    needs = train_step.lower(params, shares[0], colours[0]).compile().memory_analysis()
    seconds = []

    def train(steps):
        nonlocal params
        for step in range(steps):
            begin = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                params, loss = train_step(params, shares[step % 4], colours[step % 4])
                loss.block_until_ready()
            seconds.append(time.perf_counter() - begin)

    train(12)
    jax.profiler.start_trace(folder / "logs")
    train(6)
    jax.profiler.stop_trace()
    next((folder / "logs").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "logs").rglob("*.json.gz")).unlink()
    return {
        "steps": 6,
        "median_step_s": float(np.median(seconds[3:12])),
        "temporary_bytes": needs.temp_size_in_bytes,
        "argument_bytes": needs.argument_size_in_bytes,
        "products_bytes": 4 * MIXTURES * PIGMENTS**2 if faulty else 0,
    }
