"""Rain of the next hour from radar images, validated after each epoch."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="validation adds up losses without no_grad, so the graphs of all its batches stay",
    about="memory",
    kind="peak_in_evaluation|peak_in_one_step|accumulated_in_step|sawtooth|held_after_use|leak",
    culprit=r"evaluate",
    line=r"evaluate",
    savings="older_copy|recompute|leak|batch|precision|offload|temporary",
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(51)
    torch.set_num_threads(1)

    model = nn.Sequential(
        nn.Conv2d(6, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.Conv2d(32, 1, 3, padding=1),
    )  # fmt: skip
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def batches(count):
        for _ in range(count):
            yield torch.randn(4, 6, 64, 64), torch.rand(4, 1, 64, 64)

    def train(loader, prof=None):
        times = []
        for radar, rain in loader:
            began = time.perf_counter()
            optimizer.zero_grad()
            loss = criterion(model(radar), rain)
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    def evaluate(loader):
        model.eval()
        total_loss = 0.0
        for radar, rain in loader:
            total_loss += criterion(model(radar), rain)
        model.train()
        return total_loss.item() / 8

    if not faulty:
        evaluate = torch.no_grad()(evaluate)

    seconds = train(batches(6))
    evaluate(batches(2))
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=10, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "rain"),
        profile_memory=True,
        with_stack=True,
    ) as prof:
        for _epoch in range(3):
            train(batches(4), prof)
            evaluate(batches(8))
    pixels = 4 * 64 * 64 * 4
    graph = pixels * (6 + 16 + 32 + 1) if faulty else 0
    return {"step_seconds": seconds, "graph_bytes_per_validation_batch": graph, "steps": 10}
