"""Steps marked by hand with a number, without ``_r``; the function runs twice in each of them."""

from functools import partial

import tensorflow as tf
from account import Account, output
from in_tensorflow import profile
from tf_functions import train

STEPS = 8


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('Trace("train", step_num=i)')
    inputs = tf.random.normal([64, 128])
    float(train(inputs))
    with profile(account, file):
        for number in range(100, 100 + STEPS):
            mark = partial(tf.profiler.experimental.Trace, "train", step_num=number)
            with account.step("train", number, mark):
                float(train(inputs))
                float(train(inputs))
    account.tell()


if __name__ == "__main__":
    main()
