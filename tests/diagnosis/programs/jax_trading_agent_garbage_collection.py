"""Train a policy on simulated trades held as Python objects: an agent class and its loop."""

from __future__ import annotations

import functools
import gc
import random
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="gc.collect() after each step walks all the trades in memory",
    about="time",
    kind=r"python_work|host_bound|idle_between_steps",
    culprit=r"gc[ .]collect|garbage.collection",
    line=r"gc[ .]collect|\blearn\b|train\.py:90",
    is_held_out=False,
)


@dataclass
class Trade:
    """One decision, and what came of it."""

    state: list
    action: int
    reward: float
    notes: dict = field(default_factory=dict)


class Memory:
    """The latest trades."""

    def __init__(self, size):
        self.trades = deque(maxlen=size)

    def simulate(self, count, generator):
        """Add trades of a random walk."""
        for _ in range(count):
            state = [generator.gauss(0, 1) for _ in range(8)]
            self.trades.append(Trade(state, generator.randrange(3), generator.gauss(0, 1)))


def record(folder: Path, *, faulty: bool) -> dict:
    """Learn for a while, and then under the profiler."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    class Agent:
        def __init__(self, hidden=512):
            keys = jax.random.split(jax.random.key(2), 3)
            shapes = ((8, hidden), (hidden, hidden), (hidden, 3))
            self.layers = [
                jax.random.normal(key, shape) * (1.4 / shape[0]) ** 0.5
                for key, shape in zip(keys, shapes, strict=True)
            ]
            self.generator = random.Random(7)
            self.memory = Memory(60_000)
            self.memory.simulate(60_000, self.generator)

        @staticmethod
        def objective(layers, states, actions, rewards):
            x = states
            for layer in layers[:-1]:
                x = jax.nn.relu(x @ layer)
            chosen = jax.nn.log_softmax(x @ layers[-1])[jnp.arange(len(actions)), actions]
            return -jnp.mean(chosen * rewards)

        @staticmethod
        @functools.partial(jax.jit, donate_argnums=0)
        def policy_gradient(layers, *trades):
            grads = jax.grad(Agent.objective)(layers, *trades)
            return [layer - 0.01 * grad for layer, grad in zip(layers, grads, strict=True)]

        def learn(self, number, size=512):
            first = self.generator.randrange(len(self.memory.trades) - size)
            with jax.profiler.StepTraceAnnotation("learn", step_num=number):
                states, actions, rewards = table
                rows = slice(first, first + size)
                self.layers = self.policy_gradient(
                    self.layers, states[rows], actions[rows], rewards[rows]
                )
                jax.block_until_ready(self.layers)
                if faulty:
                    gc.collect()

    agent = Agent()
    table = (
        np.asarray([trade.state for trade in agent.memory.trades], np.float32),
        np.asarray([trade.action for trade in agent.memory.trades], np.int32),
        np.asarray([trade.reward for trade in agent.memory.trades], np.float32),
    )
    lasted = []
    for number in range(20):
        began = time.perf_counter()
        agent.learn(number)
        lasted.append(time.perf_counter() - began)
    jax.profiler.start_trace(str(folder / "plugins"))
    for number in range(20, 28):
        agent.learn(number)
    jax.profiler.stop_trace()
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.name.endswith(".xplane.pb"):
            path.rename(folder / "worker0.xplane.pb")
        else:
            path.unlink()
    return {"median_step_seconds": float(np.median(lasted[2:])), "steps": 8}
