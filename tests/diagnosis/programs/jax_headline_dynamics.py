"""Classify headlines, and note the training dynamics of each example for a data map of them."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the file of training dynamics, with all steps so far, is written anew in each step",
    about="time",
    kind=r"python_work|host_bound|idle_between_steps|host_sync",
    culprit=r"save_dynamics|dumps|json|write_text|TrainingDynamics|encode",
    line=r"save_dynamics|\blog\b|dumps|encode",
    round=3,
)


class TrainingDynamics:
    """Losses and confidences by example, as dataset cartography wants them."""

    def __init__(self, path, save_every=None):
        self.path, self.save_every = path, save_every
        self.records = []

    def log(self, step, guids, losses, confidences):
        self.records.append(
            {
                "step": step,
                "guids": guids.tolist(),
                "losses": losses.tolist(),
                "confidences": confidences.tolist(),
            }
        )
        if self.save_every and step % self.save_every == 0:
            self.save_dynamics()

    def save_dynamics(self):
        self.path.write_text(json.dumps(self.records))


def record(folder: Path, *, faulty: bool) -> dict:
    """Eighty steps, of which ten are profiled."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    words, width, sections = 4000, 96, 20

    def logits_of(params, headlines):
        x = params["words"][headlines].mean(axis=1)
        for layer in params["hidden"]:
            x = x + jax.nn.silu(x @ layer["w"] + layer["b"])
        return x @ params["out"]

    keys = jax.random.split(jax.random.key(3), 6)
    params = {
        "words": jax.random.normal(keys[0], (words, width)) * 0.1,
        "hidden": [
            {"w": jax.random.normal(key, (width, width)) * 0.1, "b": jnp.zeros(width)}
            for key in keys[1:5]
        ],
        "out": jax.random.normal(keys[5], (width, sections)) * 0.1,
    }
    tx = optax.adagrad(0.05)
    opt_state = tx.init(params)

    def train_step(params, opt_state, headlines, labels):
        def objective(params):
            logits = logits_of(params, headlines)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return losses.mean(), (losses, jnp.exp(-losses))

        grads, per_example = jax.grad(objective, has_aux=True)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, per_example

    train_step = jax.jit(train_step, donate_argnums=(0, 1))
    random = np.random.default_rng(7)
    headlines = random.integers(0, words, (8192, 32), np.int32)
    labels = random.integers(0, sections, 8192, np.int32)
    dynamics = TrainingDynamics(Path("dynamics.json"), save_every=1 if faulty else None)
    noted, seconds = None, []
    for step in range(1, 81):
        if step == 71:
            jax.profiler.start_trace(folder / "log")
        begin = time.perf_counter()
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            guids = random.integers(0, 8192, 256)
            params, opt_state, per_example = train_step(
                params, opt_state, headlines[guids], labels[guids]
            )
            # Those of the step before, which are there by now.
            if noted:
                dynamics.log(*noted[:2], *map(np.asarray, noted[2]))
            noted = step, guids, per_example
        seconds.append(time.perf_counter() - begin)
    jax.profiler.stop_trace()
    dynamics.save_dynamics()
    shutil.move(next((folder / "log").rglob("*.xplane.pb")), folder / "worker0.xplane.pb")
    shutil.rmtree(folder / "log")
    return {"median_step_seconds": float(np.median(seconds[50:70])), "steps": 10}
