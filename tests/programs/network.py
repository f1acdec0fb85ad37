"""The network that the TensorFlow programs train: two dense layers, trained with Adam.

Weights and slots are updated in place. Only the second layer's weights are copied each step,
because the backward pass still holds the old ones: the copy takes the variable's place. So, in a
healthy run, what is in memory at the end of a step is of one size for every step.
"""

import tensorflow as tf

BATCH = 192
INPUT, HIDDEN, OUTPUT = 256, 1024, 512


class Network:
    """Weights, the optimizer's slots of both layers, and one training step."""

    def __init__(self, *, head_slots: bool = True) -> None:
        """Without ``head_slots``, the second layer is frozen until it is given its slots."""
        self.hidden = tf.Variable(tf.random.normal([INPUT, HIDDEN], stddev=0.05))
        self.head = tf.Variable(tf.random.normal([HIDDEN, OUTPUT], stddev=0.05))
        self.slots = [(self.hidden, *_slots(self.hidden))]
        if head_slots:
            self.add_head_slots()

    def add_head_slots(self) -> None:
        """Create Adam's two slots for the second layer, which is trained from now on."""
        self.slots.append((self.head, *_slots(self.head)))

    def forward(self, inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The hidden layer's activations and the output."""
        with tf.name_scope("model/hidden"):
            hidden = tf.nn.relu(tf.matmul(inputs, self.hidden))
        with tf.name_scope("model/head"):
            return hidden, tf.matmul(hidden, self.head)

    def step(self, inputs: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Train on one batch; give the loss and the hidden layer's activations."""
        trained = [variable for variable, _, _ in self.slots]
        with tf.GradientTape() as tape:
            hidden, output = self.forward(inputs)
            with tf.name_scope("loss"):
                loss = tf.reduce_mean(tf.square(output - targets))
        gradients = tape.gradient(loss, trained)
        with tf.name_scope("optimizer"):
            for (variable, first, second), gradient in zip(self.slots, gradients, strict=True):
                tf.raw_ops.ResourceApplyAdam(
                    var=variable.handle,
                    m=first.handle,
                    v=second.handle,
                    beta1_power=0.9,
                    beta2_power=0.999,
                    lr=1e-3,
                    beta1=0.9,
                    beta2=0.999,
                    epsilon=1e-7,
                    grad=gradient,
                )
        return loss, hidden


def _slots(variable: tf.Variable) -> tuple[tf.Variable, tf.Variable]:
    return tf.Variable(tf.zeros_like(variable)), tf.Variable(tf.zeros_like(variable))


def batch(rows: int = BATCH) -> tuple[tf.Tensor, tf.Tensor]:
    """Random inputs and targets."""
    return tf.random.normal([rows, INPUT]), tf.random.normal([rows, OUTPUT])
