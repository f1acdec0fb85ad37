"""A cache keeps one table per length of sequence. The lengths come in no order, so it fills with
pauses, and grows no more once every length was seen. The twin's cache is full before the profile.
"""

import tensorflow as tf
from network import Network, batch
from recording import Recording, arguments, tensor_bytes

LENGTHS = (0, 1, 0, 2, 3, 1, 4, 5, 3, 6, 0, 7, *(2, 5, 1, 7, 3, 6, 0, 4, 2, 1, 6, 5))
TABLE = (512, 640)


@tf.function
def position_table(length: tf.Tensor) -> tf.Tensor:
    """The table of a length."""
    with tf.name_scope("positions"):
        angles = tf.random.stateless_uniform(TABLE, [length, 0])
        return tf.sin(angles)


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    network = Network()
    train = tf.function(network.step)
    recording = Recording(chosen.output)
    train(*batch())
    position_table(tf.constant(0))
    cache: dict[int, tf.Tensor] = {}
    if chosen.healthy:
        cache = {length: position_table(tf.constant(length)) for length in sorted(set(LENGTHS))}
    before = len(cache)
    with recording.profile():
        for number, length in enumerate(LENGTHS):
            with recording.step(number):
                if length not in cache:
                    cache[length] = position_table(tf.constant(length))
                loss, _ = train(*batch())
                float(loss)
                recording.holds(*list(cache.values())[before:])
    if chosen.healthy:
        recording.tell()
        return
    recording.tell(
        {
            "kind": "cache",
            "op": "positions/stateless_random_uniform/StatelessRandomUniformV2",
            "data_type": "float",
            "shape": f"[{TABLE[0]},{TABLE[1]}]",
            "entry_bytes": tensor_bytes(cache[0]),
            "entries": len(cache),
            "total_bytes": tensor_bytes(*cache.values()),
            "growth_steps": [LENGTHS.index(length) for length in cache],
        }
    )


if __name__ == "__main__":
    main()
