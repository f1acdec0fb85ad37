"""A JAX program whose list keeps the activations of every step. The twin's list keeps the last.

JAX on CPUs records no memory events; what it can tell is the heap at a moment, by the place in the
program that allocated. Three such moments are written.
"""

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path

import jax

MOMENTS = (4, 12, 20)
ROWS, INPUT, HIDDEN = 192, 256, 1024


@jax.jit
def activations(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    """The hidden layer."""
    return jax.nn.relu(inputs @ weights)


@jax.jit
def updated(weights: jax.Array, inputs: jax.Array, hidden: jax.Array) -> jax.Array:
    """The weights after the step."""
    return weights - 1e-3 * (inputs.T @ hidden)


def keep(weights: jax.Array, inputs: jax.Array) -> jax.Array:
    """Make what the list keeps: the one line that allocates it."""
    return activations(weights, inputs)


def neutral(profile: bytes) -> bytes:
    """The profile with other folders of the same length: the environment's and the program's."""
    here = str(Path(__file__).resolve().parent)
    for folder, other in ((sys.prefix, "/opt/environment"), (here, "/src/programs")):
        padded = (other + "-" * len(folder))[: len(folder)]
        profile = profile.replace(f"{folder}/".encode(), f"{padded}/".encode())
    return profile


def main() -> None:
    """Record one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="name of the files, with {}")
    parser.add_argument("--healthy", action="store_true", help="the twin without the fault")
    chosen = parser.parse_args()
    weights = jax.random.normal(jax.random.key(1), (INPUT, HIDDEN))
    inputs = jax.random.normal(jax.random.key(2), (ROWS, INPUT))
    retained: list[jax.Array] = []
    moments = []
    for number in range(1, MOMENTS[-1] + 1):
        if chosen.healthy:
            retained.clear()
        retained.append(keep(weights, inputs))
        weights = updated(weights, inputs, retained[-1])
        jax.block_until_ready(weights)
        if number in MOMENTS:
            file = Path(str(chosen.output).format(number))
            with tempfile.NamedTemporaryFile() as written:
                jax.profiler.save_device_memory_profile(written.name)
                profile = gzip.decompress(Path(written.name).read_bytes())
            file.write_bytes(gzip.compress(neutral(profile), 9, mtime=0))
            live = sum(array.nbytes for array in jax.live_arrays())
            held = sum(array.nbytes for array in retained)
            moments.append(
                {"file": file.name, "steps": number, "live_bytes": live, "held_bytes": held}
            )
    leak = {
        "kind": "leak",
        "op": "keep",
        "bytes_per_step": retained[-1].nbytes,
        "first_step": 0,
        "steps": MOMENTS[-1],
        "total_bytes": len(retained) * retained[-1].nbytes,
    }
    truth = {
        "allocator": "cpu:0",
        "steps": MOMENTS[-1],
        "faults": [] if chosen.healthy else [leak],
        "moments": moments,
    }
    json.dump(truth, sys.stdout)


if __name__ == "__main__":
    main()
