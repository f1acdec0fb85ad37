"""A healthy run with much of what looks like a fault at a glance: batches of changing length from a
prefetching pipeline, gradients summed over four steps, an evaluation with a larger batch every
sixth step, and a copy of the weights ("checkpoint") every eighth. There is no other twin.
"""

import tensorflow as tf
from network import INPUT, OUTPUT, Network
from recording import Recording, arguments

STEPS = 26
SUMMED = 4
EVALUATION_EVERY = 6
EVALUATION_ROWS = 640
CHECKPOINT_EVERY = 8


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    network = Network()
    weights = [network.hidden, network.head]
    sums = [tf.Variable(tf.zeros_like(variable)) for variable in weights]

    @tf.function(input_signature=[tf.TensorSpec([None, INPUT]), tf.TensorSpec([None, OUTPUT])])
    def train(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            _, output = network.forward(inputs)
            loss = tf.reduce_mean(tf.square(output - targets))
        for total, gradient in zip(sums, tape.gradient(loss, weights), strict=True):
            total.assign_add(gradient)
        return loss

    @tf.function
    def apply() -> None:
        for variable, total in zip(weights, sums, strict=True):
            variable.assign_sub(1e-3 * total)
            total.assign(tf.zeros_like(total))

    @tf.function
    def evaluate(inputs: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("evaluation"):
            return tf.reduce_mean(network.forward(inputs)[1])

    def load(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rows = 64 + tf.cast(number * 97 % 256, tf.int32)
        seed = tf.stack([number, 0])
        inputs = tf.random.stateless_normal(tf.stack([rows, INPUT]), seed)
        return inputs, tf.random.stateless_normal(tf.stack([rows, OUTPUT]), seed)

    data = iter(tf.data.Dataset.range(STEPS + 4).map(load).prefetch(2))
    recording = Recording(chosen.output)
    train(*next(data))
    apply()
    with recording.profile():
        for number in range(STEPS):
            with recording.step(number):
                loss = train(*next(data))
                if number % SUMMED == SUMMED - 1:
                    apply()
                if number % EVALUATION_EVERY == EVALUATION_EVERY - 1:
                    float(evaluate(tf.random.normal([EVALUATION_ROWS, INPUT])))
                if number % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
                    for variable in weights:
                        tf.identity(variable).numpy()
                float(loss)
                recording.holds()
    recording.tell()


if __name__ == "__main__":
    main()
