"""A JAX training step whose batches have another length every time: each is compiled anew.

The twin pads them to one length.
"""

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
from neutral import with_neutral_folders, with_neutral_host

STEPS = 12
INPUT, HIDDEN, LONGEST = 128, 512, 512


@jax.jit
def train(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    """One step of gradient descent; rows of zeros change nothing."""

    def loss(weights: jax.Array) -> jax.Array:
        hidden = jax.nn.relu(inputs @ weights)
        return jnp.mean((hidden @ weights.T - inputs) ** 2)

    return weights - 1e-3 * jax.grad(loss)(weights)


def main() -> None:
    """Record one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the recording (gzip)")
    parser.add_argument("--healthy", action="store_true", help="the twin without the fault")
    chosen = parser.parse_args()
    weights = jax.random.normal(jax.random.key(1), (INPUT, HIDDEN)) * 0.05
    lengths = [LONGEST - 8 * (number * 5 % STEPS) for number in range(STEPS)]
    batches = [
        jnp.zeros((LONGEST if chosen.healthy else rows, INPUT)).at[:rows].set(1.0)
        for rows in lengths
    ]
    weights = jax.block_until_ready(train(weights, batches[0]))
    compiled_before = train._cache_size()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        jax.profiler.start_trace(folder, profiler_options=options)
        for number in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                weights = jax.block_until_ready(train(weights, batches[number]))
        jax.profiler.stop_trace()
        (written,) = Path(folder).glob("plugins/profile/*/*.xplane.pb")
        content = with_neutral_folders(with_neutral_host(written.read_bytes()), folder)
    chosen.output.write_bytes(gzip.compress(content, 9, mtime=0))
    compiled = train._cache_size() - compiled_before
    fault = {"kind": "recompilation", "compiled": compiled}
    json.dump({"steps": STEPS, "faults": [] if chosen.healthy else [fault]}, sys.stdout)


if __name__ == "__main__":
    main()
