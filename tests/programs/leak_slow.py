"""Every step keeps a few kilobytes, while the length of the batches, and with it what is in memory
at the end of a step, changes by hundreds of kilobytes. The twin keeps only the last.
"""

import random

import tensorflow as tf
from network import INPUT, OUTPUT, Network
from recording import Recording, arguments, tensor_bytes

STEPS = 30
WATCHED = 4096
ROWS = (64, 384)


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    network = Network()
    lengths = random.Random(2)

    @tf.function(input_signature=[tf.TensorSpec([None, INPUT]), tf.TensorSpec([None, OUTPUT])])
    def train(inputs: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        loss, hidden = network.step(inputs, targets)
        with tf.name_scope("metrics"):
            watched = tf.reshape(hidden, [-1])[:WATCHED]
            return loss, tf.sqrt(watched)

    recording = Recording(chosen.output)
    train(tf.zeros([ROWS[0], INPUT]), tf.zeros([ROWS[0], OUTPUT]))
    retained: list[tf.Tensor] = []
    with recording.profile():
        for number in range(STEPS):
            with recording.step(number):
                rows = lengths.randrange(*ROWS)
                inputs = tf.random.normal([rows, INPUT])
                targets = tf.random.normal([rows, OUTPUT])
                loss, measured = train(inputs, targets)
                if chosen.healthy:
                    retained.clear()
                retained.append(measured)
                float(loss)
                recording.holds(*retained)
    if chosen.healthy:
        recording.tell()
        return
    recording.tell(
        {
            "kind": "leak",
            "op": "metrics/Sqrt",
            "data_type": "float",
            "shape": f"[{WATCHED}]",
            "bytes_per_step": tensor_bytes(retained[-1]),
            "every": 1,
            "first_step": 0,
            "steps": STEPS,
            "total_bytes": tensor_bytes(*retained),
        }
    )


if __name__ == "__main__":
    main()
