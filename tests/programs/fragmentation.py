"""Before training, blocks of data are loaded one after the other, and of each a small summary is
kept for the whole run. Block and summary lie side by side, so when the blocks are freed, every
summary stands between two holes, which are too small for what training needs. The twin makes the
summaries once all blocks are loaded, so that they lie together. The allocator's limit is set
(``record.py``).
"""

import tensorflow as tf
from network import Network, batch
from recording import Recording, arguments, tensor_bytes

STEPS = 14
BLOCKS = 18
BLOCK = (512, 512)
SUMMARY = (128, 128)
EARLIER = 32
ROWS = 1100


@tf.function(reduce_retracing=True)
def load(seed: tf.Tensor) -> tf.Tensor:
    """A large tensor that is needed only while the data is prepared."""
    with tf.name_scope("load"):
        return tf.random.stateless_normal(BLOCK, [seed, 1])


@tf.function(reduce_retracing=True)
def summary(block: tf.Tensor) -> tf.Tensor:
    """A small tensor that is kept."""
    with tf.name_scope("summary"):
        return tf.matmul(block[: SUMMARY[0]], block[:, : SUMMARY[1]])


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    # What is allocated first decides how the pool grows: one region of all that is left.
    float(tf.reduce_sum(tf.zeros([33 << 20], tf.uint8)))
    network = Network()
    train = tf.function(network.step)
    recording = Recording(chosen.output)
    # These fill the small places elsewhere, so that the pieces in question lie in that region.
    earlier = [summary(load(tf.constant(0))) for _ in range(EARLIER)]
    with recording.profile():
        with tf.profiler.experimental.Trace("prepare", step_num=0, _r=1):
            blocks, summaries = [], []
            for number in range(BLOCKS):
                blocks.append(load(tf.constant(number)))
                if not chosen.healthy:
                    summaries.append(summary(blocks[-1]))
            if chosen.healthy:
                summaries = [summary(block) for block in blocks]
            hole = tensor_bytes(blocks[0])
            blocks.clear()
        for number in range(STEPS):
            with recording.step(number):
                loss, _ = train(*batch(ROWS))
                float(loss)
                recording.holds(*summaries)
    if chosen.healthy:
        recording.tell(earlier_bytes=tensor_bytes(*earlier))
        return
    recording.tell(
        {
            "kind": "fragmentation",
            "op": "summary/MatMul",
            "data_type": "float",
            "shape": f"[{SUMMARY[0]},{SUMMARY[1]}]",
            "pin_bytes": tensor_bytes(summaries[0]),
            "pins": BLOCKS,
            "hole_bytes": hole,
            "holes": BLOCKS,
        },
        earlier_bytes=tensor_bytes(*earlier),
    )


if __name__ == "__main__":
    main()
