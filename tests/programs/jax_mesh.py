"""Records ``jax_mesh``: ``python jax_mesh.py OUT``: two processes with two devices each.

The second one sleeps 20 ms before each step. Collectives go along both axes of a mesh.
"""

import gzip
import multiprocessing
import os
import sys
import time
from pathlib import Path

PROCESSES, STEPS = 2, 3


def work(number, out):
    """One process: it records its steps."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX"] = ".*/"
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize("127.0.0.1:29611", PROCESSES, number)
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))

    def shared(*axes):
        return NamedSharding(mesh, P(*axes))

    whole = np.ones((64, 64), np.float32)
    value = jax.make_array_from_callback(whole.shape, shared("data", "model"), whole.__getitem__)

    @jax.jit
    def step(x):
        sums = jax.lax.with_sharding_constraint(x.sum(0), shared("model"))
        product = jax.lax.with_sharding_constraint(x @ x.T, shared("data", None))

        def body(carry, _):
            return carry + jnp.sum(product) * carry.mean(), None

        carry, _ = jax.lax.scan(body, jnp.ones((4,)), None, length=3)
        return sums.sum() + product.sum() + carry.sum()

    step(value).block_until_ready()
    folder = Path(out) / f"process{number}"
    with jax.profiler.trace(str(folder)):
        for at in range(STEPS):
            with jax.profiler.StepTraceAnnotation("train", step_num=at):
                time.sleep(0.02 * number)
                step(value).block_until_ready()
    (path,) = folder.rglob("*.xplane.pb")
    target = Path(out) / f"worker{number}.xplane.pb.gz"
    with gzip.GzipFile(target, "wb", 9, mtime=0) as file:
        file.write(path.read_bytes())


if __name__ == "__main__":
    start = multiprocessing.get_context("spawn").Process
    processes = [start(target=work, args=(number, sys.argv[1])) for number in range(PROCESSES)]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
