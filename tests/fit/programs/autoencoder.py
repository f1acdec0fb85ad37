"""Denoise pictures with a convolutional autoencoder, built by Keras' functional API."""

import tensorflow as tf
from tensorflow.keras import Input, Model, layers

THREADS = 1


def autoencoder():
    noisy = Input((64, 64, 1))
    down = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(noisy)
    code = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(down)
    up = layers.Conv2DTranspose(16, 3, strides=2, padding="same", activation="relu")(code)
    up = layers.Concatenate()([up, down])
    clean = layers.Conv2DTranspose(1, 3, strides=2, padding="same")(up)
    return Model(noisy, clean)


def run():
    net = autoencoder()
    for i in range(5):
        batch = tf.random.stateless_uniform((24 + 8 * (i % 3), 64, 64, 1), (4, i))
        with tf.GradientTape() as tape:
            restored = net(batch + 0.1 * tf.random.stateless_normal(batch.shape, (5, i)))
            mse = tf.reduce_mean((restored - batch) ** 2)
        for variable, gradient in zip(
            net.trainable_variables, tape.gradient(mse, net.trainable_variables), strict=True
        ):
            variable.assign_sub(0.05 * gradient)
