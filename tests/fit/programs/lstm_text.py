"""Sentiment of token sequences: embedding, LSTM, dense, in Keras."""

import numpy as np
import tensorflow as tf

THREADS = 1
VOCABULARY, LENGTH = 6000, 12


def build():
    inputs = tf.keras.Input((LENGTH,), dtype="int32")
    x = tf.keras.layers.Embedding(VOCABULARY, 64)(inputs)
    x = tf.keras.layers.LSTM(96)(x)
    outputs = tf.keras.layers.Dense(1, activation="sigmoid")(x)
    model = tf.keras.Model(inputs, outputs)
    model.compile(optimizer="rmsprop", loss="binary_crossentropy")
    return model


def run():
    rng = np.random.default_rng(0)
    x_train = rng.integers(1, VOCABULARY, (160, LENGTH))
    y_train = rng.integers(0, 2, 160).astype("float32")
    build().fit(x_train, y_train, batch_size=80, epochs=1, verbose=0)
