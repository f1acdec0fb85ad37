"""Every batch is read with a wait of 30 ms, one after the other, and training waits for it.

The twin reads eight at a time and prefetches, so that the wait is over before a batch is wanted.
"""

import time

import numpy as np
import tensorflow as tf
from network import BATCH, INPUT, OUTPUT, Network
from recording import Recording, arguments

STEPS = 16
WAIT_S = 0.03


def read(number: np.int64) -> np.ndarray:
    """A batch, after the time that a store far away takes to answer."""
    time.sleep(WAIT_S)
    return np.random.default_rng(int(number)).random((BATCH, INPUT), np.float32)


def load(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Inputs and targets of one step."""
    inputs = tf.ensure_shape(tf.numpy_function(read, [number], tf.float32), [BATCH, INPUT])
    return inputs, tf.zeros([BATCH, OUTPUT])


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    numbers = tf.data.Dataset.range(STEPS + 24)
    ahead = numbers.map(load, num_parallel_calls=8).prefetch(8)
    data = ahead if chosen.healthy else numbers.map(load)
    network = Network()
    train = tf.function(network.step)
    batches = iter(data)
    for _ in range(2):
        train(*next(batches))
    recording = Recording(chosen.output)
    with recording.profile():
        for number in range(STEPS):
            with recording.step(number):
                loss, _ = train(*next(batches))
                float(loss)
    recording.tell_time(
        {"kind": "input_bound", "wait_ps_per_step": int(WAIT_S * 1e12)}, healthy=chosen.healthy
    )


if __name__ == "__main__":
    main()
