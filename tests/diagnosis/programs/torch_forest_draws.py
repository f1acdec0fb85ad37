"""Kinds of trees from measurements of forests: rare kinds are drawn more often."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="each batch is drawn by choice() with the weights of all 600,000 rows, not once an epoch",
    about="time",
    kind="input_bound|python_work|host_bound|idle_between_steps",
    culprit=r"draw_batch|\bchoice\b",
    line=r"draw_batch",
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(71)
    rng = np.random.default_rng(71)
    torch.set_num_threads(1)
    rows, kinds, size = 600_000, 7, 256

    measured = torch.randn(rows, 54)
    shares = [0.4, 0.3, 0.1, 0.1, 0.05, 0.03, 0.02]
    labels = torch.from_numpy(rng.choice(kinds, rows, p=shares))
    weights = 1.0 / np.bincount(labels)[labels]
    weights /= weights.sum()

    model = nn.Sequential(
        nn.Linear(54, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, kinds)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    of_epoch = rng.choice(rows, 64 * size, p=weights)

    def draw_batch(step):
        if faulty:
            drawn = rng.choice(rows, size, p=weights)
        else:
            drawn = of_epoch[step * size : (step + 1) * size]
        drawn = torch.from_numpy(drawn)
        return measured[drawn], labels[drawn]

    def train(steps, prof=None):
        times = []
        for step in range(steps):
            began = time.perf_counter()
            x, y = draw_batch(step)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    seconds = train(12)
    began = time.perf_counter()
    for step in range(10):
        draw_batch(step)
    draw_seconds = (time.perf_counter() - began) / 10
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=2, active=8, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "forest"),
        with_stack=True,
    ) as prof:
        train(11, prof)
    return {"step_seconds": seconds, "draw_seconds": draw_seconds, "steps": 8}
