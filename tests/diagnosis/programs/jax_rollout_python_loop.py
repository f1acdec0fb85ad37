"""Train a cart's policy by REINFORCE on simulated episodes, with a Learner class."""

from __future__ import annotations

import time
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="each episode calls a compiled step of the simulation from Python, step by step",
    about="time",
    kind=r"launch_bound|tiny_ops|host_bound|python_work|idle_between_steps|host_sync",
    culprit=r"rollout|env_step|play_episodes",
    line=r"",
)


def record(folder: Path, *, faulty: bool) -> dict:
    """Improve the policy, and profile four rounds of it."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    carts, horizon = 64, 32

    def act(policy, observation, noise):
        hidden = jnp.tanh(observation @ policy["in"])
        return jnp.argmax(hidden @ policy["out"] + noise, axis=-1)

    def env_step(policy, state, noise):
        """One time step of all carts."""
        action = act(policy, state, noise)
        push = 2.0 * action - 1.0
        place, speed, angle, spin = jnp.moveaxis(state, -1, 0)
        spin = spin + 0.05 * (9.8 * jnp.sin(angle) - push * jnp.cos(angle))
        speed = speed + 0.05 * push
        place, angle = place + 0.05 * speed, angle + 0.05 * spin
        after = jnp.stack([place, speed, angle, spin], axis=-1)
        reward = 1.0 - jnp.abs(angle) - 0.1 * jnp.abs(place)
        return after, (state, action, reward)

    class Learner:
        def __init__(self, seed):
            first, second = jax.random.split(jax.random.key(seed))
            self.policy = {
                "in": 0.5 * jax.random.normal(first, (4, 64)),
                "out": 0.1 * jax.random.normal(second, (64, 2)),
            }
            self.env_step = jax.jit(env_step)
            self.rollout_at_once = jax.jit(self._rollout)
            self.improve = jax.jit(self._improve, donate_argnums=0)

        def rollout(self, noise):
            if not faulty:
                return self.rollout_at_once(self.policy, noise)
            state = jnp.zeros((carts, 4))
            episode = []
            for one in noise:
                state, seen = self.env_step(self.policy, state, one)
                episode.append(seen)
            return jax.tree.map(lambda *parts: np.stack(parts), *episode)

        @staticmethod
        def _rollout(policy, noise):
            def body(state, one):
                return env_step(policy, state, one)

            return jax.lax.scan(body, jnp.zeros((carts, 4)), noise)[1]

        @staticmethod
        def _improve(policy, states, actions, rewards):
            ahead = rewards.sum(axis=0)
            ahead = (ahead - ahead.mean()) / (ahead.std() + 1e-6)

            def surrogate(policy):
                logits = jnp.tanh(states @ policy["in"]) @ policy["out"]
                chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), actions[..., None], -1)
                return -jnp.mean(chosen[..., 0] * ahead)

            slopes = jax.grad(surrogate)(policy)
            return jax.tree.map(lambda weight, slope: weight - 0.05 * slope, policy, slopes)

        def play_episodes(self, rounds, first=0):
            lasted = []
            for number in range(first, first + rounds):
                began = time.perf_counter()
                with jax.profiler.StepTraceAnnotation("round", step_num=number):
                    episode = self.rollout(
                        random.gumbel(size=(horizon, carts, 2)).astype(np.float32)
                    )
                    self.policy = jax.block_until_ready(self.improve(self.policy, *episode))
                lasted.append(time.perf_counter() - began)
            return lasted

    random = np.random.default_rng(0)
    learner = Learner(seed=0)
    learner.play_episodes(2)
    lasted = learner.play_episodes(20, first=2)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(folder / "trace", profiler_options=options)
    learner.play_episodes(4, first=22)
    jax.profiler.stop_trace()
    for path in [path for path in (folder / "trace").rglob("*") if path.is_file()]:
        if path.suffix == ".pb":
            path.rename(folder / "worker0.xplane.pb")
        else:
            path.unlink()
    return {"median_step_seconds": float(np.median(lasted)), "steps": 4, "time_steps": horizon}
