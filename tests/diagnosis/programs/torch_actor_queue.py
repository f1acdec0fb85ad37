"""A PPO learner that takes rollouts from an actor thread and updates a policy."""

import queue
import threading
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="a rollout is requested only when it is needed, and polled for with sleeps of 10 ms",
    about="time",
    kind="idle_between_steps|input_bound|host_bound|lock_wait|python_work",
    culprit=r"\bsleep\b|wait_for_rollout|next_rollout|between steps",
    line=r"wait_for_rollout|sleep",
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    torch.manual_seed(10)
    torch.set_num_threads(1)
    rollouts, requests = queue.Queue(), queue.Queue()

    def act():
        generator = torch.Generator().manual_seed(1)
        while count := requests.get():
            observations = torch.randn(count, 32, generator=generator)
            time.sleep(0.001)
            rollouts.put(observations)

    def wait_for_rollout():
        if faulty:
            requests.put(256)
            while rollouts.empty():
                time.sleep(0.01)
            return rollouts.get()
        rollout = rollouts.get()
        requests.put(256)  # the actor works on the next one during the update
        return rollout

    class ActorCritic(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh())
            self.policy, self.value = nn.Linear(256, 6), nn.Linear(256, 1)

        def forward(self, observations):
            hidden = self.body(observations)
            return torch.distributions.Categorical(logits=self.policy(hidden)), self.value(hidden)

    net = ActorCritic()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=7e-4)

    def update(observations):
        with torch.no_grad():
            old, values = net(observations)
            actions = old.sample()
            before = old.log_prob(actions)
            advantage = torch.randn(256) - values.squeeze(1)
        for _ in range(1):
            now, value = net(observations)
            ratio = (now.log_prob(actions) - before).exp()
            clipped = ratio.clamp(0.8, 1.2)
            gain = torch.minimum(ratio * advantage, clipped * advantage).mean()
            loss = -gain + 0.5 * value.square().mean() - 0.01 * now.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def learn(updates, prof=None):
        times = []
        for _ in range(updates):
            began = time.perf_counter()
            rollout = wait_for_rollout()
            with record_function("ppo_update"):
                update(rollout)
            times.append(time.perf_counter() - began)
            if prof is not None:
                prof.step()
        return median(times)

    threading.Thread(target=act, name="actor", daemon=True).start()
    if not faulty:
        requests.put(256)
    learn(3)
    seconds = learn(20)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=4, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "ppo"),
        with_stack=True,
    ) as prof:
        learn(7, prof)
    requests.put(None)
    return {"step_seconds": seconds, "steps": 4}
