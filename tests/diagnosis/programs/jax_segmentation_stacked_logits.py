"""Train a small segmentation network with gradient accumulation over micro-batches."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the scan over micro-batches returns their logits, all of which are live at its end",
    about="memory",
    kind=r"accumulated_in_step|huge_temporary|held_after_use|wide_output",
    culprit=r"logits|scan|while|micro_step|8,\s*4,\s*64,\s*64,\s*21",
    line=r"micro_step|accumulate|train\.py:(6[4-8]|71)",
    savings=r"temporary|output|recompute|batch|older|precision",
    magnitude=8 * 4 * 64 * 64 * 21 * 4,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Two profiled steps, and what the compiler planned for a step."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    micro_batches, classes = 8, 21

    class SegmentationNet(nn.Module):
        @nn.compact
        def __call__(self, images):
            x = nn.relu(nn.Conv(12, (3, 3), strides=2, name="down")(images))
            x = nn.relu(nn.Conv(12, (3, 3), name="middle")(x))
            x = nn.relu(nn.ConvTranspose(8, (2, 2), strides=(2, 2), name="up")(x))
            return nn.Conv(classes, (1, 1), name="classifier")(x)

    class Segmenter:
        """Model, optimiser and the compiled step together."""

        def __init__(self, images):
            self.network = SegmentationNet()
            self.optimizer = optax.rmsprop(1e-3)
            self.params = self.network.init(jax.random.key(1), images)
            self.slots = self.optimizer.init(self.params)
            self.compiled = (
                jax.jit(self.accumulate, donate_argnums=(0, 1))
                .lower(
                    self.params,
                    self.slots,
                    jnp.zeros((micro_batches, *images.shape)),
                    jnp.zeros((micro_batches, *images.shape[:-1]), jnp.int32),
                )
                .compile()
            )

        def accumulate(self, params, slots, images, masks):
            def objective(params, image, mask):
                logits = self.network.apply(params, image)
                loss = optax.softmax_cross_entropy_with_integer_labels(logits, mask).mean()
                return loss, logits

            def micro_step(total, batch):
                (loss, logits), grads = jax.value_and_grad(objective, has_aux=True)(params, *batch)
                hits = jnp.mean(logits.argmax(axis=-1) == batch[1])
                total = jax.tree.map(jnp.add, total, grads)
                return total, (loss, logits if faulty else hits)

            zeros = jax.tree.map(jnp.zeros_like, params)
            grads, (losses, outputs) = jax.lax.scan(micro_step, zeros, (images, masks))
            accuracy = outputs.mean()
            if faulty:
                accuracy = jnp.mean(outputs.argmax(axis=-1) == masks)
            grads = jax.tree.map(lambda leaf: leaf / micro_batches, grads)
            updates, slots = self.optimizer.update(grads, slots)
            return optax.apply_updates(params, updates), slots, losses.mean(), accuracy

        def step(self, images, masks):
            self.params, self.slots, *scores = self.compiled(self.params, self.slots, images, masks)
            return jax.block_until_ready(scores)

    random = np.random.default_rng(4)
    images = random.random((micro_batches, 4, 64, 64, 3), np.float32)
    masks = random.integers(0, classes, (micro_batches, 4, 64, 64)).astype(np.int32)
    segmenter = Segmenter(images[0])
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        segmenter.step(images, masks)
        seconds.append(time.perf_counter() - began)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(folder / "p", profiler_options=options):
        for number in range(2):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                segmenter.step(images, masks)
    for path in list((folder / "p").rglob("*.*")):
        if path.is_file():
            path.rename(folder / ("worker0.xplane.pb" if path.suffix == ".pb" else "trace"))
    (folder / "trace").unlink()
    needs = segmenter.compiled.memory_analysis()
    return {
        "median_step_seconds": float(np.median(seconds[1:])),
        "steps": 2,
        "temporary_bytes": needs.temp_size_in_bytes,
        "argument_bytes": needs.argument_size_in_bytes,
        "bytes_of_all_logits": micro_batches * 4 * 64 * 64 * classes * 4 if faulty else 0,
    }
