"""Kinds of blood cells from tables of measurements, with histograms of the weights."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="histograms of all weights and gradients are computed by NumPy after every fourth step",
    about="time",
    kind="step_variation|python_work|host_bound",
    culprit=r"log_histograms|\bhistogram\b",
    line=r"log_histograms|histogram",
    magnitude=4,
    tolerance=0,
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(69)
    torch.set_num_threads(1)

    model = nn.Sequential(
        nn.Linear(300, 768), nn.ReLU(),
        nn.Linear(768, 768), nn.ReLU(),
        nn.Linear(768, 9),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    every = 4 if faulty else 1000
    spent = []

    def log_histograms(written):
        for name, weight in model.named_parameters():
            written[name] = np.histogram(weight.detach().numpy(), bins=64)
            written[name + ".grad"] = np.histogram(weight.grad.numpy(), bins=64)

    def train(steps, prof=None):
        times, written = [], {}
        for step in range(1, steps + 1):
            cells, kinds = torch.randn(160, 300), torch.randint(9, (160,))
            began = time.perf_counter()
            loss = nn.functional.cross_entropy(model(cells), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - began)
            if step % every == 0:
                log_histograms(written)
                spent.append(time.perf_counter() - began - times[-1])
            if prof:
                prof.step()
        return median(times)

    seconds = train(12)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=2, active=13, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "cells"),
        with_stack=True,
    ) as prof:
        train(15, prof)
    histogram_seconds = median(spent) if spent else 0.0
    return {"step_seconds": seconds, "histogram_seconds": histogram_seconds, "steps": 13}
