"""A healthy run with batches of 384 rows. The twin is the same run with half of them: together
they are what ``diff`` is asked to explain.
"""

import tensorflow as tf
from network import BATCH, HIDDEN, INPUT, OUTPUT, Network, batch
from recording import Recording, arguments

STEPS = 12


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    network = Network()
    train = tf.function(network.step)
    recording = Recording(chosen.output)
    rows = BATCH if chosen.healthy else 2 * BATCH
    train(*batch(rows))
    with recording.profile():
        for number in range(STEPS):
            with recording.step(number):
                loss, _ = train(*batch(rows))
                float(loss)
                recording.holds()
    if chosen.healthy:
        recording.tell()
        return
    size = tf.float32.size
    recording.tell(
        {
            "kind": "larger_batch",
            "rows": rows,
            "rows_before": BATCH,
            "scaled": [
                {
                    "shape": f"[{rows},{width}]",
                    "shape_before": f"[{BATCH},{width}]",
                    "bytes": rows * width * size,
                    "bytes_before": BATCH * width * size,
                }
                for width in (HIDDEN, OUTPUT)
            ],
            "unchanged": [
                {"shape": f"[{rows},{columns}]", "bytes": rows * columns * size}
                for rows, columns in ((INPUT, HIDDEN), (HIDDEN, OUTPUT))
            ],
        }
    )


if __name__ == "__main__":
    main()
