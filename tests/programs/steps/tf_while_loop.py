"""A compiled function with a ``tf.while_loop`` of ten rounds, called once in every step."""

import tensorflow as tf
from account import Account, output
from in_tensorflow import mark, profile

STEPS, ROUNDS = 8, 10


@tf.function
def relax(state: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Round after round the same."""
    return tf.while_loop(
        lambda number, _: number < ROUNDS,
        lambda number, state: (number + 1, tf.tanh(tf.matmul(state, weights))),
        (tf.constant(0), state),
    )[1]


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('Trace("train", step_num=i, _r=1)')
    state, weights = tf.random.normal([64, 128]), tf.random.normal([128, 128])
    state = relax(state, weights)
    with profile(account, file):
        for number in range(STEPS):
            with account.step("train", number, mark("train", number)):
                state = relax(state, weights)
                state.numpy()
    account.tell()


if __name__ == "__main__":
    main()
