"""Train skip-gram word vectors with Adam in one compiled step: one-file research code."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the step does not donate its state, so old and new weights and moments are both live",
    about="memory",
    kind=r"redundant_copy|optimizer_state",
    culprit=r"\bupdate\b|jit_update|\bstate\b|donat|16000,\s*96",
    line=r"",
    savings=r"donat",
    magnitude=3 * 2 * 16000 * 96 * 4,
    tolerance=0.35,
)

WORDS, WIDTH, BATCH, NEGATIVES = 16_000, 96, 256, 5


def record(folder: Path, *, faulty: bool) -> dict:
    """Profile four steps of the update."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    adam = optax.adam(1e-3)

    def loss(tables, center, context, negative):
        vectors = tables["word"][center]
        near = jnp.einsum("bd,bd->b", vectors, tables["context"][context])
        far = jnp.einsum("bd,bnd->bn", vectors, tables["context"][negative])
        return -jnp.mean(jax.nn.log_sigmoid(near) + jax.nn.log_sigmoid(-far).sum(axis=1))

    def update(state, center, context, negative):
        tables, moments = state
        value, grads = jax.value_and_grad(loss)(tables, center, context, negative)
        updates, moments = adam.update(grads, moments)
        return (optax.apply_updates(tables, updates), moments), value

    update = jax.jit(update) if faulty else jax.jit(update, donate_argnums=0)
    word, context = jax.random.uniform(jax.random.key(0), (2, WORDS, WIDTH)) - 0.5
    tables = {"word": word, "context": context}
    state = (tables, adam.init(tables))
    del word, context, tables
    rng = np.random.default_rng(0)

    def pairs():
        center, context = rng.integers(0, WORDS, (2, BATCH), np.int32)
        return center, context, rng.integers(0, WORDS, (BATCH, NEGATIVES), np.int32)

    needs = update.lower(state, *pairs()).compile().memory_analysis()
    times = []
    for iteration in range(12):
        if iteration == 8:
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            jax.profiler.start_trace(folder, profiler_options=options)
        start = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("iteration", step_num=iteration):
            state, value = update(state, *pairs())
            value.block_until_ready()
        times.append(time.perf_counter() - start)
    jax.profiler.stop_trace()
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.suffix == ".pb":
            path.rename(folder / "worker0.xplane.pb")
        else:
            path.unlink()
    return {
        "median_step_seconds": float(np.median(times[2:8])),
        "steps": 4,
        "argument_bytes": needs.argument_size_in_bytes,
        "output_bytes": needs.output_size_in_bytes,
        "alias_bytes": needs.alias_size_in_bytes,
        "temporary_bytes": needs.temp_size_in_bytes,
    }
