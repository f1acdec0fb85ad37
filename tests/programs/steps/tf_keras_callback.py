"""Keras' own TensorBoard callback, which marks the batches that it profiles without ``_r``."""

import tempfile
import time
from typing import Any

import tensorflow as tf
from account import Account, output
from in_tensorflow import written

FIRST, LAST = 3, 8


class Clock(tf.keras.callbacks.Callback):
    """Notes the time before or after the callback that marks, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.begins_ns: list[int] = []
        self.ends_ns: list[int] = []

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called in the order of the callbacks."""
        del batch, logs
        self.begins_ns.append(time.time_ns())

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called in the order of the callbacks."""
        del batch, logs
        self.ends_ns.append(time.time_ns())


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('Trace("Profiled batch", step_num=i)')
    layers = [tf.keras.Input((32,)), tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(4)]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse", jit_compile=False)
    inputs, targets = tf.random.normal([160, 32]), tf.random.normal([160, 4])
    first, last = Clock(), Clock()
    with tempfile.TemporaryDirectory() as folder:
        board = tf.keras.callbacks.TensorBoard(
            folder, write_graph=False, profile_batch=(FIRST, LAST)
        )
        account.starts()
        callbacks = [first, board, last]
        model.fit(inputs, targets, batch_size=16, epochs=1, verbose=0, callbacks=callbacks)
        account.stopped()
        written(folder, file)
    # The batches to profile are counted from 1, and marked with their place in the epoch, from 0.
    for number in range(FIRST - 1, LAST):
        account.begin("Profiled batch", number, [first.begins_ns[number], last.begins_ns[number]])
        account.end([first.ends_ns[number], last.ends_ns[number]])
    account.tell()


if __name__ == "__main__":
    main()
