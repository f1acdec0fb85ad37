"""Classify small pictures: a Keras network with convolutions, trained by ``fit``."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

THREADS = 1


def run():
    rng = np.random.default_rng(3)
    pictures = rng.random((96, 48, 48, 3), dtype=np.float32)
    labels = rng.integers(0, 5, 96)
    model = tf.keras.Sequential(
        [
            layers.Conv2D(24, 3, activation="relu"),
            layers.Conv2D(24, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(48, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.3),
            layers.Dense(5),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    model.fit(pictures, labels, batch_size=32, epochs=2, verbose=0)
