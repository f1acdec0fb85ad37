"""The profile is stopped in the middle of the sixth step, after one of its two functions."""

import tensorflow as tf
from account import Account, output
from in_tensorflow import mark, profile
from tf_functions import evaluate, train

STEPS = 5


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('Trace("train", step_num=i, _r=1)')
    few, many = tf.random.normal([64, 128]), tf.random.normal([640, 128])
    float(train(few))
    float(evaluate(many))
    with profile(account, file):
        for number in range(STEPS):
            with account.step("train", number, mark("train", number)):
                float(train(few))
                float(evaluate(many))
        last = account.step("train", STEPS, mark("train", STEPS), cut_off=True)
        last.__enter__()
        float(train(few))
    last.__exit__(None, None, None)
    account.tell()


if __name__ == "__main__":
    main()
