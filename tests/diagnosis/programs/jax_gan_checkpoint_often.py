"""Train a GAN on signals with two optimisers and hooks that run after each step."""

from __future__ import annotations

import gzip
import pickle
import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each fourth step writes a compressed checkpoint while the loop waits",
    about="time",
    kind=r"step_variation|host_bound|idle_between_steps",
    culprit=r"checkpoint|pickle|gzip|compress|after_step",
    line=r"save_checkpoint|after_step|gzip|compress|train\.py:(31|38|112)",
    magnitude=4,
)


class CheckpointHook:
    """Writes both networks each ``every`` steps."""

    def __init__(self, folder, every):
        self.folder, self.every = folder, every

    def after_step(self, step, state):
        """Write at the steps whose turn it is."""
        if step % self.every == self.every - 1:
            self.save_checkpoint(self.folder / "last.ckpt", state)

    @staticmethod
    def save_checkpoint(path, state):
        """All arrays of the state in one file."""
        import jax

        path.write_bytes(gzip.compress(pickle.dumps(jax.device_get(state)), compresslevel=3))


class LogHook:
    """Remembers both losses now and then."""

    def __init__(self, every):
        self.every, self.lines = every, []

    def after_step(self, step, state):
        """Read the losses of the state."""
        if step % self.every == 0:
            self.lines.append(f"{step}: {float(state['losses'][0]):.3f}")


def record(folder: Path, *, faulty: bool) -> dict:
    """Train with the hooks; the last twelve steps are profiled."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    class Generator(nn.Module):
        @nn.compact
        def __call__(self, noise):
            return nn.Dense(256)(nn.relu(nn.Dense(384)(noise)))

    class Discriminator(nn.Module):
        @nn.compact
        def __call__(self, signal):
            return nn.Dense(1)(nn.leaky_relu(nn.Dense(384)(signal)))

    generator, discriminator = Generator(), Discriminator()
    tx = {"g": optax.sgd(2e-3, momentum=0.9), "d": optax.sgd(1e-3, momentum=0.9)}
    params = {
        "g": generator.init(jax.random.key(0), jnp.zeros((1, 64))),
        "d": discriminator.init(jax.random.key(1), jnp.zeros((1, 256))),
    }
    slots = {name: tx[name].init(params[name]) for name in tx}
    state = {"params": params, "slots": slots, "losses": jnp.zeros(2)}

    def play(state, real, noise):
        def score(g, d):
            fake = discriminator.apply(d, generator.apply(g, noise))
            return jax.nn.softplus(-fake).mean(), jax.nn.softplus(fake).mean()

        def d_loss(d):
            return jax.nn.softplus(-discriminator.apply(d, real)).mean() + score(params["g"], d)[1]

        params = state["params"]
        lost = {}
        slopes = {}
        lost["d"], slopes["d"] = jax.value_and_grad(d_loss)(params["d"])
        lost["g"], slopes["g"] = jax.value_and_grad(lambda g: score(g, params["d"])[0])(params["g"])
        new = {"params": {}, "slots": {}, "losses": jnp.stack([lost["d"], lost["g"]])}
        for name, rule in tx.items():
            updates, new["slots"][name] = rule.update(slopes[name], state["slots"][name])
            new["params"][name] = optax.apply_updates(params[name], updates)
        return new

    play = jax.jit(play, donate_argnums=0)
    random = np.random.default_rng(1)
    hooks = [LogHook(every=6), CheckpointHook(folder, every=4 if faulty else 500)]

    def fit(state, first, last):
        lasted = []
        for step in range(first, last):
            began = time.perf_counter()
            with jax.profiler.StepTraceAnnotation("gan", step_num=step):
                real = random.standard_normal((256, 256)).astype(np.float32)
                noise = random.standard_normal((256, 64)).astype(np.float32)
                state = jax.block_until_ready(play(state, real, noise))
                for hook in hooks:
                    hook.after_step(step, state)
            lasted.append(time.perf_counter() - began)
        return state, lasted

    state, _ = fit(state, 0, 8)
    state, lasted = fit(state, 8, 40)
    jax.profiler.start_trace(folder / "tb")
    fit(state, 40, 52)
    jax.profiler.stop_trace()
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.name.endswith("xplane.pb"):
            path.rename(folder / "worker0.xplane.pb")
        else:
            path.unlink()
    return {
        "median_step_seconds": float(np.median(lasted)),
        "mean_step_seconds": float(np.mean(lasted)),
        "longest_step_seconds": max(lasted),
        "steps": 12,
    }
