"""A running job with its profiler's server: prints the port, then works until its input ends.

From then on it prints ``recording`` and ``idle``, each when that begins.

    python capture_jobs.py jax|tensorflow

Runs in the peers' environment, without Peakline.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# TensorFlow's allocator for the CPU records what it allocates only where oneDNN is on, which it is
# by itself on processors with AVX512_VNNI alone.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::", 0))
        return int(probe.getsockname()[1])


def jax_job(port: int) -> tuple[Callable[[], object], Callable[[], bool]]:
    """Matrix products under jit; returns one step, and whether it is recorded."""
    import jax  # type: ignore[import-not-found]
    import jax.numpy as jnp  # type: ignore[import-not-found]

    step = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jnp.ones((256, 256)) / 256
    # The server lives as long as this object.
    jax_job.server = jax.profiler.start_server(port)  # type: ignore[attr-defined]
    return lambda: step(x).block_until_ready(), jax.profiler.TraceAnnotation.is_enabled


def tensorflow_job(port: int) -> tuple[Callable[[], object], Callable[[], bool]]:
    """Matrix products in a tf.function; returns one step, and whether it is recorded."""
    import tensorflow as tf  # type: ignore[import-not-found]
    from tensorflow.python.profiler.internal import _pywrap_traceme  # type: ignore[import-not-found]

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: object) -> object:
        return tf.tanh(x @ x)  # type: ignore[operator]

    tf.profiler.experimental.server.start(port)
    x = tf.ones((256, 256)) / 256
    # An eager product as well: its tensors are allocated, and freed, one by one.
    return lambda: (step(x), tf.matmul(x, x) + 1.0), _pywrap_traceme.traceme_enabled


def say(what: object) -> None:
    """A line, at once."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main() -> None:
    port = free_port()
    step, is_recorded = {"jax": jax_job, "tensorflow": tensorflow_job}[sys.argv[1]](port)
    step()
    done = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        done.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    say(port)
    state = "idle"
    while not done.is_set():
        step()
        before, state = state, "recording" if is_recorded() else "idle"
        if state != before:
            say(state)
        done.wait(0.002)


if __name__ == "__main__":
    main()
