"""Pretrain an image encoder by contrasting two random crops of each image, in Flax linen."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="crops are taken image by image: a compiled crop is dispatched for each of 64",
    about="time",
    kind=r"tiny_ops|launch_bound|host_bound|python_work|input_bound",
    culprit=r"two_views|crop_and_flip|crop_one|dynamic_slice",
    is_held_out=True,
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Pretrain for twenty-five steps, the last five of them under the profiler."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn
    from flax.training.train_state import TrainState

    side, count = 24, 32

    class ProjectionEncoder(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.avg_pool(x, (2, 2), strides=(2, 2)).reshape(x.shape[0], -1)
            x = nn.relu(nn.Dense(384, name="trunk")(x))
            x = nn.Dense(64, name="projection")(x)
            return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def crop_and_flip(image, top, left, is_flipped):
        crop = jax.lax.dynamic_slice(image, (top, left, 0), (side, side, 3))
        return jnp.where(is_flipped, crop[:, ::-1], crop)

    crop_one = jax.jit(crop_and_flip)
    crop_all = jax.jit(jax.vmap(crop_and_flip))

    def two_views(random, images):
        images = np.concatenate([images, images])
        top, left = random.integers(0, images.shape[1] - side, (2, len(images)))
        is_flipped = random.random(len(images)) < 0.5
        if faulty:
            views = [crop_one(*each) for each in zip(images, top, left, is_flipped, strict=True)]
            return jnp.stack(views)
        return crop_all(images, top, left, is_flipped)

    @jax.jit
    def contrast(state, views):
        def nt_xent(params):
            codes = state.apply_fn({"params": params}, views)
            similar = codes @ codes.T / 0.2 - 1e9 * jnp.eye(2 * count)
            partner = jnp.roll(jnp.arange(2 * count), count)
            return optax.softmax_cross_entropy_with_integer_labels(similar, partner).mean()

        value, grads = jax.value_and_grad(nt_xent)(state.params)
        return state.apply_gradients(grads=grads), value

    encoder = ProjectionEncoder()
    params = encoder.init(jax.random.key(0), jnp.zeros((1, side, side, 3)))["params"]
    state = TrainState.create(apply_fn=encoder.apply, params=params, tx=optax.lion(1e-4))
    random = np.random.default_rng(0)
    seconds = []
    for step in range(25):
        if step == 20:
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0
            jax.profiler.start_trace(str(folder), profiler_options=options)
        images = random.random((count, 32, 32, 3), np.float32)
        began = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("pretrain", step_num=step):
            views = two_views(random, images)
            state, value = contrast(state, views)
            jax.block_until_ready(value)
        seconds.append(time.perf_counter() - began)
    jax.profiler.stop_trace()
    next(folder.rglob("*.trace.json.gz")).unlink()
    next(folder.rglob("*.xplane.pb")).rename(folder / "worker0.xplane.pb")
    return {
        "median_step_seconds": float(np.median(seconds[3:20])),
        "steps": 5,
        "crops_in_a_step": 2 * count,
    }
