"""Spots in pictures of lungs: each step trains on one patch of each picture."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

SIDE, PATCH, BATCH = 896, 96, 8

PAIR = Pair(
    fault="whole pictures are cast to float and normalised before a small patch is cut out",
    about="time",
    kind="expensive_op|time_in_copies|unfused_elementwise|input_bound",
    culprit=r"aten::(_to_copy|to|copy_|div|sub)(?!\w)",
    faulty_allowed=(r"huge_temporary",),
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(73)
    torch.set_num_threads(1)

    pictures = torch.randint(256, (BATCH, 1, SIDE, SIDE), dtype=torch.uint8)
    spots = (torch.rand(BATCH, 1, SIDE, SIDE) > 0.99).to(torch.uint8)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 1, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

    def normalise(x):
        return (x.float() / 255 - 0.45) / 0.22

    def cut(x, corners):
        return torch.stack(
            [one[:, r : r + PATCH, c : c + PATCH] for one, (r, c) in zip(x, corners, strict=True)]
        )

    def prepare():
        corners = torch.randint(SIDE - PATCH, (BATCH, 2)).tolist()
        x = cut(normalise(pictures), corners) if faulty else normalise(cut(pictures, corners))
        return x, cut(spots, corners).float()

    def train_step():
        began = time.perf_counter()
        x, target = prepare()
        prepared = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), target)
        loss.backward()
        optimizer.step()
        return time.perf_counter() - began, prepared - began

    times = [train_step() for _ in range(10)]
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        for _ in range(6):
            train_step()
    write_trace(prof, folder, "lungs")
    return {
        "step_seconds": median(whole for whole, _ in times),
        "prepare_seconds": median(part for _, part in times),
        "steps": 6,
    }
