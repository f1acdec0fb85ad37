"""A Keras GRU, trained: a while loop of four rounds forward and another backward in every step."""

import tensorflow as tf
from account import Account, output
from in_tensorflow import mark, profile

STEPS, LENGTH = 8, 4


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('Trace("train", step_num=i, _r=1)')
    layers = [tf.keras.Input((LENGTH, 16)), tf.keras.layers.GRU(32), tf.keras.layers.Dense(4)]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse", jit_compile=False)
    inputs, targets = tf.random.normal([16, LENGTH, 16]), tf.random.normal([16, 4])
    model.train_on_batch(inputs, targets)
    with profile(account, file):
        for number in range(STEPS):
            with account.step("train", number, mark("train", number)):
                model.train_on_batch(inputs, targets)
    account.tell()


if __name__ == "__main__":
    main()
