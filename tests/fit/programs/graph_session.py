"""Logistic regression with a hidden layer in the style of TensorFlow 1: placeholders, a session."""

import numpy as np
import tensorflow.compat.v1 as tf

THREADS = 1


def run():
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(11)
        x = tf.placeholder(tf.float32, [None, 200], name="x")
        y = tf.placeholder(tf.int64, [None], name="y")
        w0 = tf.get_variable("w0", [200, 700], initializer=tf.glorot_uniform_initializer())
        b0 = tf.get_variable("b0", [700], initializer=tf.zeros_initializer())
        w1 = tf.get_variable("w1", [700, 10], initializer=tf.glorot_uniform_initializer())
        hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(x, w0) + b0), rate=0.2)
        logits = tf.matmul(hidden, w1)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        )
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
        initialise = tf.global_variables_initializer()
    rng = np.random.default_rng(1)
    config = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    with tf.Session(graph=graph, config=config) as session:
        session.run(initialise)
        for step in range(20):
            rows = 1500 if step % 5 == 4 else 400
            feed = {x: rng.random((rows, 200)), y: rng.integers(0, 10, rows)}
            session.run(accuracy if step % 5 == 4 else [train, loss], feed)
