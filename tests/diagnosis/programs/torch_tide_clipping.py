"""Heights of tides a day ahead, with gradients that are clipped."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="gradients are clipped at a quantile, for which all of them are sorted in each step",
    about="time",
    kind="expensive_op",
    culprit=r"aten::(sort|quantile|kthvalue)(?!\w)",
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(72)
    torch.set_num_threads(1)

    model = nn.Sequential(
        nn.Linear(336, 384), nn.Tanh(),
        nn.Linear(384, 384), nn.Tanh(),
        nn.Linear(384, 24),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    clipping = []

    def clip_gradients():
        if not faulty:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            return
        sizes = torch.cat([weight.grad.abs().flatten() for weight in model.parameters()])
        limit = torch.quantile(sizes, 0.99)
        for weight in model.parameters():
            weight.grad.clamp_(-limit, limit)

    def train_step(history, day):
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(history), day)
        loss.backward()
        before = time.perf_counter()
        clip_gradients()
        clipping.append(time.perf_counter() - before)
        optimizer.step()
        return time.perf_counter() - began

    times = [train_step(torch.randn(1024, 336), torch.randn(1024, 24)) for _ in range(10)]
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=6, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "tides"),
        record_shapes=True,
    ) as prof:
        for _ in range(8):
            train_step(torch.randn(1024, 336), torch.randn(1024, 24))
            prof.step()
    return {"step_seconds": median(times), "clip_seconds": median(clipping[:10]), "steps": 6}
