"""Every seventh step writes the weights to disk, uncompressed and compressed, while training waits.

The twin writes them after the training.
"""

import io
import time

import numpy as np
import tensorflow as tf
from network import Network, batch
from recording import Recording, arguments

STEPS = 28
EVERY = 7


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    network = Network()
    train = tf.function(network.step)
    inputs, targets = batch()
    for _ in range(2):
        float(train(inputs, targets)[0])

    def write() -> None:
        weights = {"hidden": network.hidden.numpy(), "head": network.head.numpy()}
        np.savez_compressed(io.BytesIO(), **weights)

    slow_s: list[float] = []
    recording = Recording(chosen.output)
    with recording.profile():
        for number in range(STEPS):
            with recording.step(number):
                inputs, targets = batch()
                loss, _ = train(inputs, targets)
                float(loss)
                if number % EVERY == EVERY - 1 and not chosen.healthy:
                    began = time.perf_counter()
                    write()
                    slow_s.append(time.perf_counter() - began)
    recording.tell_time(
        {
            "kind": "step_variation",
            "steps": list(range(EVERY - 1, STEPS, EVERY)),
            "extra_ps": [int(seconds * 1e12) for seconds in slow_s],
        },
        healthy=chosen.healthy,
    )


if __name__ == "__main__":
    main()
