"""Train an actor and a critic by PPO in a small simulated world, with a storage of rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.diagnosis.pair import Pair

STEPS, WORLDS, SENSORS = 64, 32, 64

PAIR = Pair(
    fault="the storage of rollouts is never cleared after an update, so that all of them stay",
    about="memory",
    kind=r"leak",
    culprit=r"collect|RolloutStorage|insert|train\.py:9[0-3]",
    line=r"collect|insert|train\.py:9[0-3]",
    savings=r"older_copy|held|leak|release",
    # Sensors, actions, log probabilities and rewards of all moments.
    magnitude=STEPS * WORLDS * (SENSORS + 4 + 1 + 1) * 4,
    is_held_out=True,
    round=2,
)


class Rollout(NamedTuple):
    """What was seen, done and earned."""

    sensors: object
    actions: object
    log_prob: object
    rewards: object


class RolloutStorage:
    """Rollouts since the last update."""

    def __init__(self):
        self.rollouts = []

    def insert(self, rollout):
        """One more rollout."""
        self.rollouts.append(rollout)

    def latest(self):
        """The one to learn from."""
        return self.rollouts[-1]

    def after_update(self):
        """Forget what was learned from."""
        self.rollouts.clear()


def record(folder: Path, *, faulty: bool) -> dict:
    """Nine updates, with the device's memory after each."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import linen as nn

    class ActorCritic(nn.Module):
        @nn.compact
        def __call__(self, sensors):
            x = nn.tanh(nn.Dense(128)(nn.tanh(nn.Dense(128)(sensors))))
            return nn.Dense(4, name="actor")(x), nn.Dense(1, name="critic")(x)[..., 0]

    agent = ActorCritic()
    params = agent.init(jax.random.key(0), jnp.zeros(SENSORS))
    tx = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(3e-4, eps=1e-5))

    def log_density(mean, actions):
        return -0.5 * jnp.sum((actions - mean) ** 2, axis=-1)

    @jax.jit
    def play(params, world, key):
        def move(world, key):
            mean, _ = agent.apply(params, world)
            actions = mean + jax.random.normal(key, mean.shape)
            moved = 0.95 * world.at[:, :4].add(0.1 * actions)
            reward = -jnp.sum(moved**2, axis=-1)
            return moved, Rollout(world, actions, log_density(mean, actions), reward)

        return jax.lax.scan(move, world, jax.random.split(key, STEPS))

    class Runner:
        def __init__(self):
            self.world = jax.random.normal(jax.random.key(1), (WORLDS, SENSORS))
            self.storage = RolloutStorage()

        def collect(self, params, key):
            self.world, rollout = play(params, self.world, key)
            self.storage.insert(rollout)

    @jax.jit
    def ppo_update(params, moments, rollout):
        def surrogate(params):
            mean, value = agent.apply(params, rollout.sensors)
            returns = jnp.cumsum(rollout.rewards[::-1], axis=0)[::-1]
            advantage = jax.lax.stop_gradient(returns - value)
            ratio = jnp.exp(log_density(mean, rollout.actions) - rollout.log_prob)
            clipped = jnp.clip(ratio, 0.8, 1.2)
            gain = jnp.minimum(ratio * advantage, clipped * advantage)
            return jnp.mean((returns - value) ** 2) - jnp.mean(gain)

        updates, moments = tx.update(jax.grad(surrogate)(params), moments)
        return optax.apply_updates(params, updates), moments

    runner, moments = Runner(), tx.init(params)
    in_use = []
    for number, key in enumerate(jax.random.split(jax.random.key(2), 9)):
        runner.collect(params, key)
        params, moments = ppo_update(params, moments, runner.storage.latest())
        jax.block_until_ready(params)
        if not faulty:
            runner.storage.after_update()
        jax.profiler.save_device_memory_profile(folder / f"update{number}.pprof.pb")
        in_use.append(sum(array.nbytes for array in jax.live_arrays()))
    return {"bytes_in_use": in_use, "steps": 9, "bytes_per_step": int(np.diff(in_use)[-1])}
