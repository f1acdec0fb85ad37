"""A generative adversarial network for curves: two networks, two optimizers, one compiled step."""

import tensorflow as tf

THREADS = 1
LATENT, POINTS, BATCH = 32, 256, 128


def dense_stack(*widths):
    return tf.keras.Sequential(
        [tf.keras.layers.Dense(w, activation="relu") for w in widths[:-1]]
        + [tf.keras.layers.Dense(widths[-1])]
    )


def run():
    generator, critic = dense_stack(256, 512, POINTS), dense_stack(512, 128, 1)
    generator.build((None, LATENT))
    critic.build((None, POINTS))
    g_opt, d_opt = (tf.keras.optimizers.SGD(1e-3, momentum=0.5) for _ in range(2))
    bce = tf.nn.sigmoid_cross_entropy_with_logits

    @tf.function(reduce_retracing=True)
    def step(real):
        noise = tf.random.normal((BATCH, LATENT))
        with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
            fake = generator(noise, training=True)
            on_real, on_fake = critic(real), critic(fake)
            g_loss = tf.reduce_mean(bce(tf.ones_like(on_fake), on_fake))
            d_loss = tf.reduce_mean(bce(tf.ones_like(on_real), on_real))
            d_loss += tf.reduce_mean(bce(tf.zeros_like(on_fake), on_fake))
        g_vars, d_vars = generator.trainable_variables, critic.trainable_variables
        g_opt.apply(g_tape.gradient(g_loss, g_vars), g_vars)
        d_opt.apply(d_tape.gradient(d_loss, d_vars), d_vars)

    x = tf.linspace(0.0, 6.28, POINTS)
    for _ in range(8):
        step(tf.sin(x + tf.random.uniform((BATCH, 1), 0, 6.28)))
