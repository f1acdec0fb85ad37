"""Predict the speed on roads with a graph network; roads are edges between crossings."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the graph is made a dense matrix, crossings x crossings, to pass messages",
    about="memory",
    kind=r"huge_temporary|peak_in_one_step",
    culprit=r"1800,\s*1800|adjacency",
    line=r"pass_messages|adjacency|train\.py:(3\d|4[0-3])",
    savings=r"temporary|batch|pieces|precision|recompute|program|fuse",
    is_held_out=True,
    round=4,
)


class RoadGraph(NamedTuple):
    speeds: object
    senders: object
    receivers: object
    lengths: object


def dense_adjacency(jnp, graph, closeness):
    """``adjacency[a, b]``: how much crossing a hears of crossing b."""
    crossings = graph.speeds.shape[0]
    adjacency = jnp.zeros((crossings, crossings))
    return adjacency.at[graph.receivers, graph.senders].add(closeness)


def pass_messages(jax, graph, closeness, features, *, dense):
    """The weighted sum of what the neighbours of each crossing have."""
    if dense:
        return dense_adjacency(jax.numpy, graph, closeness) @ features
    messages = closeness[:, None] * features[graph.senders]
    return jax.ops.segment_sum(messages, graph.receivers, features.shape[0])


def record(folder: Path, *, faulty: bool) -> dict:
    """Six steps under the profiler, after some without."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    class RoadNet(nn.Module):
        @nn.compact
        def __call__(self, graph):
            x = nn.Dense(48, name="encode")(graph.speeds)
            decay = self.param("decay", nn.initializers.ones, (2,))
            for layer in range(2):
                closeness = jnp.exp(-nn.softplus(decay[layer]) * graph.lengths)
                heard = pass_messages(jax, graph, closeness, x, dense=faulty)
                hidden = nn.relu(nn.Dense(256)(jnp.concatenate([x, heard], axis=-1)))
                x = x + nn.Dense(48)(hidden)
            return nn.Dense(1, name="speed")(x)[:, 0]

    net, tx = RoadNet(), optax.adam(1e-3)

    @jax.jit
    def update(params, opt_state, graph, target):
        def mse(params):
            return jnp.mean((net.apply(params, graph) - target) ** 2)

        loss, grads = jax.value_and_grad(mse)(params)
        updates, opt_state = tx.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    rng = np.random.default_rng(12)
    crossings, roads = 1800, 5400
    receivers = np.sort(rng.integers(0, crossings, roads, np.int32))

    def hour_of_traffic():
        speeds = rng.random((crossings, 24), np.float32)
        senders = rng.integers(0, crossings, roads, np.int32)
        graph = RoadGraph(speeds, senders, receivers, rng.random(roads, np.float32))
        return graph, speeds.mean(axis=1)

    hours = [hour_of_traffic() for _ in range(4)]
    params = net.init(jax.random.key(3), hours[0][0])
    opt_state = tx.init(params)
    needs = update.lower(params, opt_state, *hours[0]).compile().memory_analysis()
    seconds = []

    def train(steps):
        nonlocal params, opt_state
        for step in range(steps):
            began = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("update", step_num=step):
                params, opt_state, loss = update(params, opt_state, *hours[step % 4])
                loss.block_until_ready()
            seconds.append(time.perf_counter() - began)

    train(12)
    jax.profiler.start_trace(folder / "trace")
    train(6)
    jax.profiler.stop_trace()
    next((folder / "trace").rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    next((folder / "trace").rglob("*.json.gz")).unlink()
    return {
        "median_step_seconds": float(np.median(seconds[2:12])),
        "steps": 6,
        "temporary_bytes": needs.temp_size_in_bytes,
        "matrix_bytes": 4 * crossings**2 if faulty else 0,
    }
