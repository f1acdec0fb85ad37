"""Power of a wind turbine from 48 sensors, by a DataLoader over tensors in memory."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="a batch of tensors in memory is indexed row by row, and its 512 rows are stacked",
    about="time",
    kind="input_bound|tiny_ops|host_bound|python_work|launch_bound",
    culprit=r"DataLoader|aten::(select|stack)(?!\w)",
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

    torch.manual_seed(67)
    torch.set_num_threads(1)

    model = nn.Sequential(
        nn.Linear(48, 256), nn.ReLU(),
        nn.Linear(256, 256), nn.ReLU(),
        nn.Linear(256, 1),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    rows = TensorDataset(torch.randn(512 * 20, 48), torch.rand(512 * 20, 1))
    if faulty:
        loader = DataLoader(rows, batch_size=512, shuffle=True)
    else:
        batches = BatchSampler(RandomSampler(rows), batch_size=512, drop_last=False)
        loader = DataLoader(rows, sampler=batches, batch_size=None)

    def train(steps, prof=None):
        times, waits = [], []
        iterator = iter(loader)
        for _ in range(steps):
            began = time.perf_counter()
            sensors, power = next(iterator)
            waits.append(time.perf_counter() - began)
            loss = nn.functional.mse_loss(model(sensors), power)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times), median(waits)

    seconds, wait = train(15)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=4, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "turbine"),
    ) as prof:
        train(6, prof)
    return {"step_seconds": seconds, "loader_seconds": wait, "steps": 4}
