"""Train a Wasserstein critic whose layers are bounded by their largest singular value, in JAX."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the spectral norm of each kernel comes from a whole singular value decomposition",
    about="time",
    kind=r"expensive_op",
    culprit=r"svd|gesdd|spectral|linalg|norm",
    is_held_out=True,
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Train the critic for twenty-six updates, and profile the last six."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    widths = (96, 160, 160, 1)

    def init_critic(key):
        layers = []
        for fan_in, fan_out in itertools.pairwise(widths):
            key, kernel_key, vector_key = jax.random.split(key, 3)
            kernel = jax.random.normal(kernel_key, (fan_in, fan_out)) * fan_in**-0.5
            layers.append({"kernel": kernel, "u": jax.random.normal(vector_key, (fan_out,))})
        kernels = [{"kernel": layer["kernel"]} for layer in layers]
        return kernels, [layer["u"] for layer in layers]

    def spectral_norm(kernel, u, rounds=2):
        if faulty:
            return jnp.linalg.norm(kernel, ord=2), u
        frozen = jax.lax.stop_gradient(kernel)
        for _ in range(rounds):
            v = frozen @ u
            v = v / (jnp.linalg.norm(v) + 1e-6)
            u = frozen.T @ v
            u = u / (jnp.linalg.norm(u) + 1e-6)
        return v @ kernel @ u, u

    def critic(params, vectors, x):
        renewed = []
        for number, (layer, u) in enumerate(zip(params, vectors, strict=True)):
            with jax.named_scope(f"layer_{number}"):
                sigma, renewed_u = spectral_norm(layer["kernel"], u)
                x = x @ (layer["kernel"] / sigma)
                renewed.append(renewed_u)
                if number < len(params) - 1:
                    x = jax.nn.leaky_relu(x, 0.2)
        return x.mean(), renewed

    tx = optax.adam(1e-4, b1=0.0, b2=0.9)

    @jax.jit
    def critic_update(params, vectors, moments, real, fake):
        def wasserstein(params):
            scores, renewed = critic(params, vectors, jnp.concatenate([fake, real]))
            return scores - 2 * critic(params, vectors, real)[0], renewed

        (loss, vectors), grads = jax.value_and_grad(wasserstein, has_aux=True)(params)
        updates, moments = tx.update(grads, moments)
        return optax.apply_updates(params, updates), vectors, moments, loss

    params, vectors = init_critic(jax.random.key(0))
    moments = tx.init(params)
    random = np.random.default_rng(0)
    durations = []
    for number in range(26):
        if number == 20:
            jax.profiler.start_trace(folder / "tensorboard")
        real, fake = random.standard_normal((2, 2048, 96), np.float32)
        start = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("critic", step_num=number):
            params, vectors, moments, loss = critic_update(params, vectors, moments, real, fake)
            loss.block_until_ready()
        durations.append(time.perf_counter() - start)
    jax.profiler.stop_trace()
    next(folder.rglob("*.xplane.pb")).replace(folder / "worker0.xplane.pb")
    next(folder.rglob("*.trace.json.gz")).unlink()
    return {"median_step_seconds": float(np.median(durations[2:20])), "steps": 6}
