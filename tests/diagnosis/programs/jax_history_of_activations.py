"""Train an autoencoder with a Trainer class and a history of its metrics, in Flax NNX."""

from __future__ import annotations

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each step appends its reconstruction, a device array, to the history of metrics",
    about="memory",
    kind=r"leak",
    culprit=r"fit_batch|train\.py:58",
    line=r"fit_batch|train\.py:58",
    savings=r"older_copy|held|leak|release",
    magnitude=256 * 784 * 4,
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Save the device's memory after each of eight steps."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import nnx

    class AutoEncoder(nnx.Module):
        def __init__(self, rngs):
            self.encoder = nnx.Linear(784, 128, rngs=rngs)
            self.code = nnx.Linear(128, 16, rngs=rngs)
            self.expand = nnx.Linear(16, 128, rngs=rngs)
            self.decoder = nnx.Linear(128, 784, rngs=rngs)

        def __call__(self, x):
            code = self.code(nnx.relu(self.encoder(x)))
            return self.decoder(nnx.relu(self.expand(code)))

    class Trainer:
        def __init__(self, model):
            self.model = model
            self.optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
            self.history = []

        @staticmethod
        @nnx.jit
        def update(model, optimizer, images):
            def loss_fn(model):
                output = model(images)
                return jnp.mean((output - images) ** 2), output

            (loss, output), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model)
            optimizer.update(model, grads)
            return loss, output

        def fit_batch(self, images):
            loss, output = self.update(self.model, self.optimizer, images)
            metrics = {"loss": loss, "sample": output if faulty else output[:1, :16]}
            self.history.append(metrics)
            if not faulty and len(self.history) >= 2:
                self.history[-2] = jax.device_get(self.history[-2])
            return metrics

    trainer = Trainer(AutoEncoder(nnx.Rngs(0)))
    random = np.random.default_rng(0)
    in_use = []
    for step in range(8):
        trainer.fit_batch(random.random((256, 784), np.float32))
        jax.block_until_ready(trainer.history[-1])
        jax.profiler.save_device_memory_profile(folder / f"{step + 1:02}.pprof.pb")
        in_use.append(sum(array.nbytes for array in jax.live_arrays()))
    return {"bytes_in_use": in_use, "steps": 8, "bytes_per_step": 256 * 784 * 4 if faulty else 0}
