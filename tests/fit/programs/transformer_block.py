"""A decoder of two blocks, trained on random tokens by a step compiled with ``tf.function``."""

import tensorflow as tf

THREADS = 1
BATCH, TOKENS, WIDTH, HEADS, VOCABULARY = 8, 96, 128, 4, 800


class Block(tf.Module):
    def __init__(self):
        super().__init__()
        shapes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH)}
        shapes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
        self.w = {k: tf.Variable(tf.random.normal(s, stddev=0.05)) for k, s in shapes.items()}

    def __call__(self, x):
        q, k, v = (
            tf.transpose(tf.reshape(part, (BATCH, TOKENS, HEADS, -1)), (0, 2, 1, 3))
            for part in tf.split(self._dense(x, "qkv"), 3, axis=-1)
        )
        scores = tf.matmul(q, k, transpose_b=True) / (WIDTH // HEADS) ** 0.5
        mask = tf.linalg.band_part(tf.ones((TOKENS, TOKENS)), -1, 0)
        attended = tf.matmul(tf.nn.softmax(scores - 1e9 * (1 - mask)), v)
        merged = tf.reshape(tf.transpose(attended, (0, 2, 1, 3)), (BATCH, TOKENS, WIDTH))
        x += self._dense(merged, "out")
        return x + self._dense(tf.nn.gelu(self._dense(x, "up")), "down")

    def _dense(self, x, name):
        return tf.einsum("btc,cd->btd", x, self.w[name])


def run():
    embedding = tf.Variable(tf.random.normal((VOCABULARY, WIDTH), stddev=0.05))
    blocks = [Block(), Block()]
    weights = [embedding, *(v for block in blocks for v in block.trainable_variables)]
    optimizer = tf.keras.optimizers.AdamW(1e-3)

    @tf.function
    def train_step(tokens):
        with tf.GradientTape() as tape:
            x = tf.gather(embedding, tokens[:, :-1])
            for block in blocks:
                x = block(x)
            logits = tf.einsum("btc,vc->btv", x, embedding)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(tokens[:, 1:], logits)
            )
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    for _ in range(6):
        train_step(tf.random.uniform((BATCH, TOKENS + 1), maxval=VOCABULARY, dtype=tf.int32))
