"""Training and evaluation, marked with different names: an evaluation after every third step."""

import tensorflow as tf
from account import Account, output
from in_tensorflow import mark, profile
from tf_functions import evaluate, train

STEPS, EVERY = 9, 3


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('Trace("train" or "eval", step_num=i, _r=1)')
    few, many = tf.random.normal([64, 128]), tf.random.normal([640, 128])
    float(train(few))
    float(evaluate(many))
    with profile(account, file):
        for number in range(STEPS):
            with account.step("train", number, mark("train", number)):
                float(train(few))
            if number % EVERY == EVERY - 1:
                with account.step("eval", number, mark("eval", number)):
                    float(evaluate(many))
    account.tell()


if __name__ == "__main__":
    main()
