"""Train a learning-to-rank model whose loss is weighted by the ranks of the scores, in Flax NNX."""

from __future__ import annotations

import functools
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the ranks come from a pure_callback to NumPy in each step",
    about="time",
    kind=r"host_callback|host_bound|python_work|expensive_op",
    culprit=r"callback|lambda_weights|ranks_of",
    line=r"ranks_of|lambda_weights|train\.py:49|callback",
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Fit in a plain loop; the profiler runs for four of its steps."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import nnx

    class Scorer(nnx.Module):
        def __init__(self, features, *, rngs):
            self.hidden = nnx.Linear(features, 64, rngs=rngs)
            self.norm = nnx.LayerNorm(64, rngs=rngs)
            self.score = nnx.Linear(64, 1, rngs=rngs)

        def __call__(self, x):
            return self.score(nnx.gelu(self.norm(self.hidden(x))))[..., 0]

    def ranks_of(scores):
        """Place of each document in its query's list, ties by the mean of their places."""
        ranks = np.empty(scores.shape, np.float32)
        for query, row in enumerate(np.asarray(scores)):
            order = sorted(range(len(row)), key=lambda document: -row[document])
            for place, document in enumerate(order):
                ranks[query, document] = place + 1
        return ranks

    def lambda_weights(scores):
        if faulty:
            shape = jax.ShapeDtypeStruct(scores.shape, jnp.float32)
            ranks = jax.pure_callback(ranks_of, shape, scores)
        else:
            ranks = 1.0 + (scores[:, None, :] > scores[:, :, None]).sum(axis=-1)
        return 1.0 / jnp.log2(1.0 + ranks)

    @functools.partial(nnx.jit, donate_argnums=(0, 1))
    def train_on(model, optimizer, documents, gains):
        def loss_fn(model):
            scores = model(documents)
            weights = lambda_weights(jax.lax.stop_gradient(scores))
            return -(weights * gains * jax.nn.log_softmax(scores)).sum(axis=-1).mean()

        loss, grads = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, grads)
        return loss

    model = Scorer(40, rngs=nnx.Rngs(params=7))
    optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
    random = np.random.default_rng(2)
    seconds = []
    for step in range(24):
        if step == 20:
            jax.profiler.start_trace(folder, profiler_options=quiet_options(jax))
        documents = random.standard_normal((256, 40, 40)).astype(np.float32)
        gains = random.integers(0, 4, (256, 40)).astype(np.float32)
        began = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            train_on(model, optimizer, documents, gains).block_until_ready()
        seconds.append(time.perf_counter() - began)
    jax.profiler.stop_trace()
    for path in list(folder.rglob("*")):
        if path.suffix == ".pb":
            path.replace(folder / "worker0.xplane.pb")
        elif path.is_file():
            path.unlink()
    return {
        "median_step_seconds": float(np.median(seconds[2:20])),
        "steps": 4,
        "callbacks_in_a_step": int(faulty),
    }


def quiet_options(jax):
    """Without a record of every call of Python's own."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    return options
