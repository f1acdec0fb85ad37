"""Classify galaxies by their images, as an Experiment class with a step method, in JAX."""

from __future__ import annotations

import functools
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the update returns all gradients, to log their norm, and the experiment holds them",
    about="memory",
    kind=r"redundant_copy|held_after_use|optimizer_state|step_up",
    culprit=r"_update|Experiment|step \(train\.py|train\.py:(5[89]|60)",
    line=r"\bstep\b|train\.py:(5[89]|60)",
    savings=r"older_copy|duplicate|held|release|offload|donat",
    magnitude=4 * (1024 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10),
    round=3,
)


class Experiment:
    """Holds what training needs; ``step`` returns the scalars to write."""

    def __init__(self, jax, optax, *, gradients_for_logs, sizes=(1024, 512, 512, 10)):
        self.jax, self.optax = jax, optax
        keys = jax.random.split(jax.random.key(11), len(sizes) - 1)
        self._params = {
            f"linear_{i}": {"w": jax.random.normal(key, (a, b)) * a**-0.5, "b": jax.numpy.zeros(b)}
            for i, (key, a, b) in enumerate(zip(keys, sizes[:-1], sizes[1:], strict=True))
        }
        self._optimizer = optax.sgd(1e-2, momentum=0.9, nesterov=True)
        self._opt_state = self._optimizer.init(self._params)
        self._gradients_for_logs, self._grads = gradients_for_logs, None
        self._update = jax.jit(self._update_fn, donate_argnums=(0, 1))

    def _loss_fn(self, params, images, kinds):
        x = images.reshape(images.shape[0], -1)
        for number in range(len(params)):
            layer = params[f"linear_{number}"]
            x = x @ layer["w"] + layer["b"]
            if number < len(params) - 1:
                x = self.jax.nn.leaky_relu(x)
        losses = self.optax.softmax_cross_entropy_with_integer_labels(x, kinds)
        return losses.mean()

    def _update_fn(self, params, opt_state, images, kinds):
        loss, grads = self.jax.value_and_grad(self._loss_fn)(params, images, kinds)
        updates, opt_state = self._optimizer.update(grads, opt_state, params)
        params = self.optax.apply_updates(params, updates)
        if self._gradients_for_logs:
            return params, opt_state, {"loss": loss}, grads
        return params, opt_state, {"loss": loss, "norm": self.optax.global_norm(grads)}, None

    def step(self, images, kinds):
        self._params, self._opt_state, scalars, self._grads = self._update(
            self._params, self._opt_state, images, kinds
        )
        if self._grads is not None:
            scalars["norm"] = self.optax.global_norm(self._grads)
        return scalars


def record(folder: Path, *, faulty: bool) -> dict:
    """Save the device's memory after each of ten steps."""
    import jax
    import numpy as np
    import optax

    experiment = Experiment(jax, optax, gradients_for_logs=faulty)
    random = np.random.default_rng(6)
    save = functools.partial(jax.profiler.save_device_memory_profile, backend="cpu")
    in_use, norms = [], []
    for number in range(10):
        images = random.standard_normal((64, 32, 32), np.float32)
        scalars = experiment.step(images, random.integers(0, 10, 64, np.int32))
        norms.append(float(scalars["norm"]))
        save(str(folder / f"heap{number:02}.pprof.pb"))
        in_use.append(sum(array.nbytes for array in jax.live_arrays()))
    weights = sum(leaf.nbytes for leaf in jax.tree.leaves(experiment._params))
    return {
        "bytes_in_use": in_use,
        "steps": 10,
        "weight_bytes": weights,
        "gradient_bytes": weights if faulty else 0,
        "largest_norm": max(norms),
    }
