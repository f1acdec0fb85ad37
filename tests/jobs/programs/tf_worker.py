"""One of two TensorFlow workers: ``RANK=... PORTS=a,b PROFILER=port tf_worker.py``.

MultiWorkerMirroredStrategy over its ring; the input of the second worker is slow where
``VARIANT=faulty``. It trains for ``SECONDS`` while the profiler's server is open for a capture.
"""

import json
import os
import time
from pathlib import Path

RANK = int(os.environ["RANK"])
WORKERS = [f"localhost:{port}" for port in os.environ["PORTS"].split(",")]
os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": {"worker": WORKERS}, "task": {"type": "worker", "index": RANK}}
)

import tensorflow as tf  # noqa: E402

SLOW = os.environ["VARIANT"] == "faulty" and RANK == 1
OUT = Path(os.environ["OUT"])
STEPS = int(os.environ.get("STEPS", "60"))


def batches():
    """Batches from a disk."""
    while True:
        time.sleep(0.1 if SLOW else 0.03)
        yield tf.random.stateless_uniform([32, 64], [1, RANK]), tf.zeros([32], tf.int32)


def main():
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.profiler.experimental.server.start(int(os.environ["PROFILER"]))
    with strategy.scope():
        model = tf.keras.Sequential(
            [tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(10)]
        )
        model.build([None, 64])
        optimizer = tf.keras.optimizers.SGD(0.01)

    @tf.function
    def train(images, labels):
        def replica(images, labels):
            with tf.GradientTape() as tape:
                each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images))
                loss = tf.reduce_mean(each)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            return loss

        return strategy.run(replica, args=(images, labels))

    ends = []
    for number, (images, labels) in zip(range(STEPS), batches(), strict=False):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            train(images, labels).numpy()
        ends.append(time.time_ns())
        if number == 10:
            (OUT / f"ready_{RANK}").touch()
    (OUT / f"clock_{RANK}.json").write_text(json.dumps({"rank": RANK, "ends_ns": ends}))


main()
