"""Classify the nodes of a citation graph with a Trainer that has a validation interval, in JAX."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the whole validation split is evaluated after each fourth batch, within the loop",
    about="time",
    kind=r"step_variation|host_bound|host_sync|python_work",
    culprit=r"validate|validation_step|on_batch_end|score_nodes",
    line=r"validate|on_batch_end|train\.py:(5[89]|6[0-7])",
    magnitude=4,
    is_held_out=True,
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Fit sixty batches, and sixteen more under the profiler."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    def init_network(key):
        first, second = jax.random.split(key)
        return {
            "first": jax.random.normal(first, (160, 256)) / 13,
            "second": jax.random.normal(second, (256, 7)) / 16,
        }

    def classify(weights, adjacency, features):
        x = jax.nn.relu(adjacency @ (features @ weights["first"]))
        return adjacency @ (x @ weights["second"])

    class SubgraphSampler:
        def __init__(self, seed, nodes=320):
            self.random, self.nodes = np.random.default_rng(seed), nodes

        def sample(self):
            edges = self.random.random((self.nodes, self.nodes), np.float32) < 0.02
            adjacency = (edges | edges.T | np.eye(self.nodes, dtype=bool)).astype(np.float32)
            features = self.random.random((self.nodes, 160), np.float32)
            subjects = self.random.integers(0, 7, self.nodes, np.int32)
            return adjacency / adjacency.sum(axis=1, keepdims=True), features, subjects

    class Trainer:
        def __init__(self, weights, train, validation, validation_interval):
            self.weights, self.train, self.validation = weights, train, validation
            self.validation_interval = validation_interval
            self.moments = tx.init(weights)
            self.best = 0.0

        def validate(self):
            right = 0
            for subgraph in self.validation:
                right += score_nodes(self.weights, *subgraph)
            self.best = max(self.best, int(right) / (320 * len(self.validation)))

        def on_batch_end(self, number):
            if number % self.validation_interval == self.validation_interval - 1:
                self.validate()

        def fit(self, first, last):
            took = []
            for number in range(first, last):
                began = time.perf_counter()
                with jax.profiler.StepTraceAnnotation("batch", step_num=number):
                    self.weights, self.moments, loss = fit_nodes(
                        self.weights, self.moments, *self.train.sample()
                    )
                    loss.block_until_ready()
                    self.on_batch_end(number)
                took.append(time.perf_counter() - began)
            return took

    tx = optax.adam(5e-3)

    @jax.jit
    def score_nodes(weights, adjacency, features, subjects):
        return jnp.sum(classify(weights, adjacency, features).argmax(axis=-1) == subjects)

    @jax.jit
    def fit_nodes(weights, moments, adjacency, features, subjects):
        def loss_fn(weights):
            logits = classify(weights, adjacency, features)
            return optax.softmax_cross_entropy_with_integer_labels(logits, subjects).mean()

        loss, grads = jax.value_and_grad(loss_fn)(weights)
        updates, moments = tx.update(grads, moments)
        return optax.apply_updates(weights, updates), moments, loss

    held = SubgraphSampler(1)
    trainer = Trainer(
        init_network(jax.random.key(0)),
        SubgraphSampler(0),
        [held.sample() for _ in range(12)],
        validation_interval=4 if faulty else 1000,
    )
    trainer.fit(0, 3)
    trainer.validate()
    took = trainer.fit(4, 64)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 1
    jax.profiler.start_trace(folder / "logs", profiler_options=options)
    trainer.fit(64, 80)
    jax.profiler.stop_trace()
    trainer.validate()
    (folder / "logs").rename(folder / "old")
    next((folder / "old").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "old").rglob("*.json.gz")).unlink()
    return {
        "median_step_seconds": float(np.median(took)),
        "mean_step_seconds": float(np.mean(took)),
        "longest_step_seconds": max(took),
        "steps": 16,
        "best_share": trainer.best,
    }
