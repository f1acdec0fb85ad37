"""Nothing is marked: two different compiled functions are called in turn."""

import tensorflow as tf
from account import Account, output
from in_tensorflow import profile

STEPS = 6
weights = tf.Variable(tf.random.normal([128, 128]))


@tf.function
def train(inputs: tf.Tensor) -> tf.Tensor:
    """Forward, backward and update."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(inputs, weights)))
    weights.assign_sub(1e-3 * tape.gradient(loss, weights))
    return loss


@tf.function
def evaluate(inputs: tf.Tensor) -> tf.Tensor:
    """Forward, over ten times the rows."""
    return tf.reduce_mean(tf.square(tf.matmul(inputs, weights)))


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account("")
    few, many = tf.random.normal([64, 128]), tf.random.normal([640, 128])
    float(train(few))
    float(evaluate(many))
    with profile(account, file):
        for _ in range(STEPS):
            for function, inputs in ((train, few), (evaluate, many)):
                with account.step(function.__name__, None):
                    float(function(inputs))
    account.tell()


if __name__ == "__main__":
    main()
