"""Train a decoder-only transformer on long sequences of bytes, in Flax linen."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="attention makes the whole [batch, heads, length, length] matrix of scores",
    about="memory",
    kind=r"huge_temporary|one_pass",
    culprit=r"attention|softmax|scores|bhqk|1024,\s*1024",
    line=r"attend|CausalSelfAttention|train\.py:3[3-6]",
    savings=r"temporary|recompute|fuse|pieces|precision|batch",
    # The scores take most of the program whatever their number of layers.
    faulty_allowed=(r"one_pass: ",),
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Profile two steps, and ask the compiler how much memory a step needs."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    length, heads, width = 1024, 4, 64

    def attend(q, k, v, offset):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        rows = offset + jnp.arange(q.shape[1])[:, None]
        scores = jnp.where(rows >= jnp.arange(k.shape[1]), scores, -1e9)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)

    class CausalSelfAttention(nn.Module):
        @nn.compact
        def __call__(self, x):
            q, k, v = (
                nn.DenseGeneral((heads, width // heads), name=name)(x)
                for name in ("query", "key", "value")
            )
            if faulty:
                out = attend(q, k, v, 0)
            else:
                chunks = q.reshape(q.shape[0], -1, 256, *q.shape[2:]).swapaxes(0, 1)
                block = jax.checkpoint(lambda one: attend(one[0], k, v, one[1]))
                out = jax.lax.map(block, (chunks, jnp.arange(0, length, 256)))
                out = out.swapaxes(0, 1).reshape(q.shape)
            return nn.DenseGeneral(width, axis=(-2, -1), name="out")(out)

    class Decoder(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(256, width, name="wte")(tokens)
            x += nn.Embed(length, width, name="wpe")(jnp.arange(length))
            for layer in range(1):
                x += CausalSelfAttention(name=f"attention_{layer}")(nn.LayerNorm()(x))
                h = nn.gelu(nn.Dense(4 * width)(nn.LayerNorm()(x)))
                x += nn.Dense(width)(h)
            return nn.Dense(256, name="lm_head")(nn.LayerNorm(name="ln_f")(x))

    model = Decoder()
    text = np.random.default_rng(0).integers(0, 256, (2, length + 1), np.int32)
    params = jax.jit(model.init)(jax.random.key(0), text[:, :-1])
    tx = optax.sgd(3e-2)
    opt_state = tx.init(params)

    def step(params, opt_state, text):
        def loss(params):
            logits = model.apply(params, text[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, text[:, 1:]).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    step = jax.jit(step, donate_argnums=(0, 1))
    temporary = step.lower(params, opt_state, text).compile().memory_analysis().temp_size_in_bytes
    seconds = []
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    for number in range(8):
        if number == 6:
            jax.profiler.start_trace(folder / "t", profiler_options=options)
        began = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            params, opt_state, _ = jax.block_until_ready(step(params, opt_state, text))
        seconds.append(time.perf_counter() - began)
    jax.profiler.stop_trace()
    next((folder / "t").rglob("*.xplane.pb")).replace(folder / "worker0.xplane.pb")
    next((folder / "t").rglob("*.json.gz")).unlink()
    return {
        "median_step_seconds": float(np.median(seconds[1:6])),
        "steps": 2,
        "temporary_bytes": temporary,
        "one_matrix_bytes": 2 * heads * length * length * 4,
    }
