"""Recorded twice, with TF_CPU_BFC_MEM_LIMIT_IN_MB=65536 and =24: ``train.py DIRECTORY``.

TensorFlow 2.21, TF_CPU_ALLOCATOR_USE_BFC=1, TF_ENABLE_ONEDNN_OPTS=0. Four threads multiply
matrices side by side; under 24 MiB they wait for each other's memory.
"""

import sys

import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(4)
tf.config.threading.set_intra_op_parallelism_threads(1)


@tf.function
def many(x):
    """Eight chains that no op of one needs of another."""
    parts = []
    for k in range(8):
        y = tf.matmul(x, x + float(k))
        y = tf.nn.softmax(tf.matmul(y, x))
        parts.append(tf.reduce_sum(y))
    return tf.add_n(parts)


tf.profiler.experimental.start(sys.argv[1])
x = tf.ones([900, 900])
for step in range(4):
    with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
        float(many(x))
tf.profiler.experimental.stop()
