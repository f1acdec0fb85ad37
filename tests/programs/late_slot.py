"""The second layer is frozen until step 7; then it is trained, and the optimizer makes its slots:
memory rises once and stays. The twin trains the layer, with slots, from before the profile.
"""

import tensorflow as tf
from network import HIDDEN, OUTPUT, Network, batch
from recording import Recording, arguments, tensor_bytes

STEPS = 20
THAWED = 7


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    network = Network(head_slots=chosen.healthy)
    train = tf.function(network.step)
    recording = Recording(chosen.output)
    train(*batch())
    with recording.profile():
        for number in range(STEPS):
            with recording.step(number):
                if number == THAWED and not chosen.healthy:
                    network.add_head_slots()
                    train = tf.function(network.step)
                loss, _ = train(*batch())
                float(loss)
                new = [slot for _, *slots in network.slots[1:] for slot in slots]
                recording.holds(*([] if chosen.healthy else new))
    if chosen.healthy:
        recording.tell()
        return
    recording.tell(
        {
            "kind": "step_up",
            "op": "ZerosLike",
            "data_type": "float",
            "shape": f"[{HIDDEN},{OUTPUT}]",
            "buffer_bytes": tensor_bytes(new[0]),
            "buffers": len(new),
            "total_bytes": tensor_bytes(*new),
            "step": THAWED,
        }
    )


if __name__ == "__main__":
    main()
