"""Distances between all pairs of rows are made by broadcasting, through a tensor with one more
dimension that is many times larger than anything else. The twin makes them with a product of
matrices. Variant ``once`` does so in one step only.
"""

import tensorflow as tf
from network import BATCH, Network, batch
from recording import Recording, arguments

STEPS = 14
ONCE = 9
FEATURES = 128


def by_broadcasting(rows: tf.Tensor) -> tf.Tensor:
    """Squared distances through a tensor of [rows, rows, features]."""
    with tf.name_scope("distances"):
        return tf.reduce_sum(tf.square(rows[:, None, :] - rows[None, :, :]), 2)


def by_product(rows: tf.Tensor) -> tf.Tensor:
    """Squared distances through the products of all pairs."""
    with tf.name_scope("distances"):
        norms = tf.reduce_sum(tf.square(rows), 1)
        return norms[:, None] + norms[None, :] - 2.0 * tf.matmul(rows, rows, transpose_b=True)


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__, "always", "once")
    network = Network()
    train = tf.function(network.step)
    good = tf.function(by_product)
    bad = tf.function(by_broadcasting)
    recording = Recording(chosen.output)
    train(*batch())
    good(tf.zeros([BATCH, FEATURES]))
    steps = [ONCE] if chosen.variant == "once" else list(range(STEPS))
    with recording.profile():
        for number in range(STEPS):
            with recording.step(number):
                loss, hidden = train(*batch())
                measure = bad if number in steps and not chosen.healthy else good
                float(tf.reduce_mean(measure(hidden[:, :FEATURES])))
                float(loss)
                recording.holds()
    if chosen.healthy:
        recording.tell()
        return
    recording.tell(
        {
            "kind": "huge_temporary",
            "op": "distances/sub",
            "data_type": "float",
            "shape": f"[{BATCH},{BATCH},{FEATURES}]",
            "bytes": BATCH * BATCH * FEATURES * tf.float32.size,
            "steps": steps,
        }
    )


if __name__ == "__main__":
    main()
