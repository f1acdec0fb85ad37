"""Grades pictures of retinas, and validates after every fourth batch of a short epoch."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the whole validation set goes through the model as one batch of 48",
    about="memory",
    kind="peak_in_evaluation|peak_in_one_step|peak_outside_steps|huge_temporary",
    culprit=r"validate",
    line=r"validate",
    savings="batch|temporary|precision",
    faulty_allowed=(r"step_variation",),
    twin_allowed=(r"step_variation",),
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(64)
    torch.set_num_threads(1)

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5),
    )  # fmt: skip
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.rand(48, 3, 64, 64)
    grades = torch.randint(5, (48,))

    @torch.no_grad()
    def validate():
        model.eval()
        size = 48 if faulty else 8
        right = 0
        for first in range(0, 48, size):
            logits = model(images[first : first + size])
            right += (logits.argmax(dim=1) == grades[first : first + size]).sum()
        model.train()
        return right.item() / 48

    def train(steps, prof=None):
        times = []
        for _ in range(steps):
            batch, labels = torch.rand(8, 3, 64, 64), torch.randint(5, (8,))
            began = time.perf_counter()
            optimizer.zero_grad()
            loss = criterion(model(batch), labels)
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    seconds = train(8)
    validate()
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=7, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "retina"),
        profile_memory=True,
        with_stack=True,
    ) as prof:
        for _epoch in range(2):
            train(4, prof)
            validate()
    first_layer = (48 if faulty else 8) * 16 * 64 * 64 * 4
    return {"step_seconds": seconds, "validation_first_layer_bytes": first_layer, "steps": 7}
