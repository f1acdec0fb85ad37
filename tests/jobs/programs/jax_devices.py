"""A program on four devices of one CPU process, of which the third has more work if faulty.

``XLA_FLAGS=--xla_force_host_platform_device_count=4``; with ``NAMES`` it is recorded.
"""

import json
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

FAULTY = os.environ["VARIANT"] == "faulty"
OUT = Path(os.environ["OUT"])
SETTLING, RECORDED = 5, 6


def work(values, weights):
    """The layers of a device; its loop is longer on the one that has more tokens."""
    rounds = 3
    if FAULTY:
        rounds = jnp.where(jax.lax.axis_index("data") == 2, 60, 3)

    def layer(_, values):
        return jnp.tanh(values @ weights)

    return jax.lax.fori_loop(0, rounds, layer, values)


def step(weights, values):
    """The gradient of all devices, and the new weights."""
    outputs = work(values, weights)
    gradient = jax.lax.psum(values.T @ outputs, "data")
    return weights - 1e-4 * gradient


def main():
    mesh = Mesh(jax.devices(), ("data",))
    rows, whole = PartitionSpec("data"), PartitionSpec()
    train = jax.jit(
        jax.shard_map(step, mesh=mesh, in_specs=(whole, rows), out_specs=whole, check_vma=False)
    )
    weights = jnp.eye(256) * 0.1
    values = jnp.ones((4 * 128, 256))
    ends = []

    def run(count, first):
        nonlocal weights
        for number in range(first, first + count):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                time.sleep(0.01)
                weights = train(weights, values).block_until_ready()
            ends.append(time.time_ns())

    run(SETTLING, 0)
    del ends[:-1]
    if os.environ.get("NAMES"):
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        options.host_tracer_level = 2
        jax.profiler.start_trace(str(OUT), profiler_options=options)
        ends[-1] = time.time_ns()
    run(RECORDED, SETTLING)
    if os.environ.get("NAMES"):
        jax.profiler.stop_trace()
    (OUT / "clock_0.json").write_text(json.dumps({"rank": 0, "ends_ns": ends}))


main()
