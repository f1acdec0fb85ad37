"""A buffer takes the activations of every step and is emptied every fifth: memory grows and falls
back, and the profile ends in the middle of a rise. The twin empties it every step.
"""

import tensorflow as tf
from network import BATCH, HIDDEN, Network, batch
from recording import Recording, arguments, tensor_bytes

STEPS = 28
PERIOD = 5


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    network = Network()
    train = tf.function(network.step)
    recording = Recording(chosen.output)
    train(*batch())
    retained: list[tf.Tensor] = []
    with recording.profile():
        for number in range(STEPS):
            with recording.step(number):
                if chosen.healthy or number % PERIOD == 0:
                    retained.clear()
                loss, hidden = train(*batch())
                retained.append(hidden)
                float(loss)
                recording.holds(*retained)
    if chosen.healthy:
        recording.tell()
        return
    one = tensor_bytes(retained[-1])
    recording.tell(
        {
            "kind": "sawtooth",
            "op": "model/hidden/MatMul",
            "data_type": "float",
            "shape": f"[{BATCH},{HIDDEN}]",
            "bytes_per_step": one,
            "period_steps": PERIOD,
            "high_bytes": PERIOD * one,
            "low_bytes": one,
        }
    )


if __name__ == "__main__":
    main()
