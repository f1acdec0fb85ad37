"""A network of twelve small layers whose ops are run one by one, from Python, at every step.

The twin runs the same as one compiled function.
"""

import tensorflow as tf
from recording import Recording, arguments

STEPS = 12
LAYERS, WIDTH, ROWS = 12, 48, 32


def main() -> None:
    """Record one run."""
    chosen = arguments(__doc__)
    layers = [tf.Variable(tf.random.normal([WIDTH, WIDTH], stddev=0.1)) for _ in range(LAYERS)]

    def step(inputs: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            hidden = inputs
            for layer in layers:
                hidden = tf.nn.relu(tf.matmul(hidden, layer))
            loss = tf.reduce_mean(tf.square(hidden - inputs))
        for layer, gradient in zip(layers, tape.gradient(loss, layers), strict=True):
            layer.assign_sub(1e-3 * gradient)
        return loss

    train = tf.function(step) if chosen.healthy else step
    inputs = tf.random.normal([ROWS, WIDTH])
    for _ in range(3):
        float(train(inputs))
    recording = Recording(chosen.output)
    with recording.profile():
        for number in range(STEPS):
            with recording.step(number):
                float(train(inputs))
    recording.tell_time({"kind": "host_bound"}, healthy=chosen.healthy)


if __name__ == "__main__":
    main()
