"""Deep Q-learning on a small control task with a replay memory of transitions."""

import random
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="each sampled batch is built from Python lists of numbers with torch.tensor",
    about="time",
    kind="python_work|host_bound|input_bound|time_in_copies|idle_between_steps",
    culprit=r"ReplayMemory|sample|method tensor|torch\.tensor|aten::lift_fresh|detach_",
    line=r"train\.py.*sample|built-in (method|function) tensor",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(0)
    random.seed(0)
    torch.set_num_threads(1)
    width, batch_size = 64, 128

    class ReplayMemory:
        def __init__(self, capacity):
            if faulty:
                self.transitions = [self.transition() for _ in range(capacity)]
            else:
                self.states = torch.randn(capacity, width)
                self.following = torch.randn(capacity, width)
                self.actions = torch.randint(4, (capacity,))
                self.rewards = torch.randn(capacity)
            self.capacity = capacity

        def transition(self):
            state = [random.gauss(0, 1) for _ in range(width)]
            following = [random.gauss(0, 1) for _ in range(width)]
            return state, random.randrange(4), random.gauss(0, 1), following

        def sample(self, count):
            if faulty:
                rows = random.sample(self.transitions, count)
                states, actions, rewards, following = zip(*rows, strict=True)
                return (
                    torch.tensor(states),
                    torch.tensor(actions),
                    torch.tensor(rewards),
                    torch.tensor(following),
                )
            rows = torch.randint(self.capacity, (count,))
            columns = (self.states, self.actions, self.rewards, self.following)
            return tuple(column[rows] for column in columns)

    class Agent:
        def __init__(self):
            self.online, self.target = self.network(), self.network()
            self.target.load_state_dict(self.online.state_dict())
            self.optimizer = torch.optim.Adam(self.online.parameters(), lr=3e-4, fused=True)

        def network(self):
            return nn.Sequential(nn.Linear(width, 512), nn.ReLU(), nn.Linear(512, 4))

        def learn(self, states, actions, rewards, following):
            with torch.no_grad():
                goal = rewards + 0.99 * self.target(following).max(dim=1).values
            value = self.online(states).gather(1, actions[:, None]).squeeze(1)
            loss = F.smooth_l1_loss(value, goal)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    memory, agent = ReplayMemory(2000), Agent()
    seconds = []
    for _ in range(30):
        start = time.perf_counter()
        agent.learn(*memory.sample(batch_size))
        seconds.append(time.perf_counter() - start)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=5, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "dqn"),
        with_stack=True,
        record_shapes=True,
    ) as prof:
        for _ in range(7):
            agent.learn(*memory.sample(batch_size))
            prof.step()
    return {"step_seconds": median(seconds[5:]), "steps": 5}
