"""A running job with its profiler's server: prints the port, then works until its input ends.

    python capture_jobs.py jax|tensorflow

Runs in the peers' environment, without Peakline.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::", 0))
        return int(probe.getsockname()[1])


def jax_job(port: int) -> Callable[[], object]:
    """Matrix products under jit; returns one step."""
    import jax  # type: ignore[import-not-found]
    import jax.numpy as jnp  # type: ignore[import-not-found]

    step = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jnp.ones((256, 256)) / 256
    # The server lives as long as this object.
    jax_job.server = jax.profiler.start_server(port)  # type: ignore[attr-defined]
    return lambda: step(x).block_until_ready()


def tensorflow_job(port: int) -> Callable[[], object]:
    """Matrix products in a tf.function; returns one step."""
    import tensorflow as tf  # type: ignore[import-not-found]

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: object) -> object:
        return tf.tanh(x @ x)  # type: ignore[operator]

    tf.profiler.experimental.server.start(port)
    x = tf.ones((256, 256)) / 256
    # An eager product as well: its tensors are allocated, and freed, one by one.
    return lambda: (step(x), tf.matmul(x, x) + 1.0)


def main() -> None:
    port = free_port()
    step = {"jax": jax_job, "tensorflow": tensorflow_job}[sys.argv[1]](port)
    step()
    done = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        done.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while not done.is_set():
        step()
        done.wait(0.002)


if __name__ == "__main__":
    main()
