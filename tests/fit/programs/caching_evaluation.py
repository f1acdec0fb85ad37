"""Evaluate every few steps and cache the features of the validation set under the step."""

import tensorflow as tf

THREADS = 1


class Scorer(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.features = tf.keras.layers.Dense(400, activation="tanh")
        self.head = tf.keras.layers.Dense(7)

    def call(self, inputs):
        return self.head(self.features(inputs))


def evaluate(model, batches):
    return tf.concat([model.features(batch) for batch in batches], axis=0)


def run():
    model, optimizer = Scorer(), tf.keras.optimizers.SGD(0.1)
    validation = [tf.random.normal((200, 120)) for _ in range(4)]
    cache = {}
    for step in range(24):
        inputs, wanted = tf.random.normal((256, 120)), tf.random.normal((256, 7))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - wanted))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        if step % 3 == 2:
            cache[step] = evaluate(model, validation)
        if len(cache) > 5:
            del cache[min(cache)]
