"""A history is one tensor, made anew each step from the last one and the step's own rows: no
buffer lives long and no two have one shape, but each is larger than the last. The twin's history
is a window of the last rows.
"""

import tensorflow as tf
from network import BATCH, INPUT, Network, batch
from recording import Recording, arguments, tensor_bytes

STEPS = 20
WINDOW = 2 * BATCH


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    network = Network()
    train = tf.function(network.step)
    recording = Recording(chosen.output)
    train(*batch())
    history = tf.zeros([WINDOW, INPUT])
    with recording.profile():
        for number in range(STEPS):
            with recording.step(number):
                inputs, targets = batch()
                loss, _ = train(inputs, targets)
                old = history[BATCH:] if chosen.healthy else history
                history = tf.concat([old, inputs], 0)
                del old
                float(loss)
                recording.holds(history)
    if chosen.healthy:
        recording.tell()
        return
    recording.tell(
        {
            "kind": "leak",
            "op": "ConcatV2",
            "data_type": "float",
            "shape": None,
            "bytes_per_step": tensor_bytes(inputs),
            "every": 1,
            "first_step": 0,
            "steps": STEPS,
            "total_bytes": STEPS * tensor_bytes(inputs),
        }
    )


if __name__ == "__main__":
    main()
