"""A switch transformer's feed-forward layer: each token goes to one of sixteen experts, in JAX."""

from __future__ import annotations

import functools
import shutil
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

TOKENS, EXPERTS, CAPACITY, WIDTH = 1024, 16, 96, 64

PAIR = Pair(
    fault="tokens reach experts by one-hot matrices of tokens x experts x places of each expert",
    about="memory",
    kind=r"huge_temporary|accumulated_in_step|redundant_copy",
    culprit=r"one_hot|tec,|1024,\s*16,\s*96|1024,\s*1536|train\.py:(5[789]|6[0-3])",
    line=r"switch_layer|train\.py:(5[789]|6[0-3])",
    savings=r"temporary|recompute|pieces|batch|precision|fuse",
    magnitude=TOKENS * EXPERTS * CAPACITY * 4,
    tolerance=3.2,  # one such matrix, or several of them
    round=3,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Four steps under the profiler, and what the compiler says a step needs."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    def init(key):
        router, up, down, out = jax.random.split(key, 4)
        return {
            "router": jax.random.normal(router, (WIDTH, EXPERTS)) / 8,
            "up": jax.random.normal(up, (EXPERTS, WIDTH, 2 * WIDTH)) / 8,
            "down": jax.random.normal(down, (EXPERTS, 2 * WIDTH, WIDTH)) / 11,
            "out": jax.random.normal(out, (WIDTH, 32)) / 8,
        }

    def experts(params, inputs):
        hidden = jax.nn.relu(jnp.einsum("ecd,edf->ecf", inputs, params["up"]))
        return jnp.einsum("ecf,efd->ecd", hidden, params["down"])

    def route(params, tokens):
        gates = jax.nn.softmax(tokens @ params["router"])
        expert = gates.argmax(axis=-1)
        chosen = jax.nn.one_hot(expert, EXPERTS, dtype=jnp.int32)
        place = (jnp.cumsum(chosen, axis=0) * chosen).sum(axis=-1) - 1
        return gates.max(axis=-1), expert, place

    def switch_layer(params, tokens):
        gate, expert, place = route(params, tokens)
        if faulty:
            dispatch = (
                jax.nn.one_hot(expert, EXPERTS)[:, :, None]
                * jax.nn.one_hot(place, CAPACITY)[:, None, :]
            )
            combine = gate[:, None, None] * dispatch
            inputs = jnp.einsum("tec,td->ecd", dispatch, tokens)
            return jnp.einsum("tec,ecd->td", combine, experts(params, inputs))
        slots = jnp.zeros((EXPERTS, CAPACITY, WIDTH))
        inputs = slots.at[expert, place].set(tokens, mode="drop")
        outputs = experts(params, inputs).at[expert, place].get(mode="fill", fill_value=0)
        return gate[:, None] * outputs

    tx = optax.sgd(0.1, momentum=0.9)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update_step(params, momentum, tokens, targets):
        def loss_fn(params):
            logits = (tokens + switch_layer(params, tokens)) @ params["out"]
            return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, momentum = tx.update(grads, momentum)
        return optax.apply_updates(params, updates), momentum, loss

    params = init(jax.random.key(5))
    momentum = tx.init(params)
    random = np.random.default_rng(5)
    tokens = random.standard_normal((TOKENS, WIDTH), np.float32)
    targets = random.integers(0, 32, TOKENS, np.int32)
    needs = update_step.lower(params, momentum, tokens, targets).compile().memory_analysis()
    seconds = []
    for step in range(16):
        if step == 12:
            jax.profiler.start_trace(folder / "log")
        begin = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("update", step_num=step):
            params, momentum, loss = update_step(params, momentum, tokens, targets)
            loss.block_until_ready()
        seconds.append(time.perf_counter() - begin)
    jax.profiler.stop_trace()
    shutil.move(next((folder / "log").rglob("*.xplane.pb")), folder / "worker0.xplane.pb")
    shutil.rmtree(folder / "log")
    return {
        "median_step_seconds": float(np.median(seconds[2:12])),
        "steps": 4,
        "temporary_bytes": needs.temp_size_in_bytes,
        "argument_bytes": needs.argument_size_in_bytes,
        "matrix_bytes": TOKENS * EXPERTS * CAPACITY * 4 if faulty else 0,
    }
