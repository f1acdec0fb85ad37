"""Diseases of leaves, from photos that are changed a little in each epoch."""

import random
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="photos are flipped, brightened and cut one after another, in a loop over the batch",
    about="time",
    kind="tiny_ops|python_work|host_bound|input_bound|launch_bound",
    culprit=r"augment",
    line=r"augment",
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(65)
    random.seed(65)
    torch.set_num_threads(1)

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 14),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def augment(photos):
        if faulty:
            changed = []
            for photo in photos:
                flipped = photo.flip(2) if random.random() < 0.5 else photo
                top, left = random.randrange(9), random.randrange(9)
                padded = functional.pad(flipped, (4, 4, 4, 4))
                cut = padded[:, top : top + 24, left : left + 24]
                grey = cut.mean(dim=0, keepdim=True)
                colours = grey + (cut - grey) * random.uniform(0.5, 1.5)
                bright = (colours * random.uniform(0.8, 1.2)).clamp(0, 1)
                changed.append((bright - 0.5) / 0.25)
            return torch.stack(changed)
        if random.random() < 0.5:
            photos = photos.flip(3)
        top, left = random.randrange(9), random.randrange(9)
        photos = functional.pad(photos, (4, 4, 4, 4))[:, :, top : top + 24, left : left + 24]
        grey = photos.mean(dim=1, keepdim=True)
        photos = grey + (photos - grey) * (0.5 + torch.rand(len(photos), 1, 1, 1))
        photos = (photos * (0.8 + 0.4 * torch.rand(len(photos), 1, 1, 1))).clamp_(0, 1)
        return (photos - 0.5) / 0.25

    spent = []

    def train(steps, prof=None):
        times = []
        for _ in range(steps):
            photos, labels = torch.rand(48, 3, 24, 24), torch.randint(14, (48,))
            began = time.perf_counter()
            photos = augment(photos)
            spent.append(time.perf_counter() - began)
            loss = functional.cross_entropy(model(photos), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    seconds = train(12)
    augment_seconds = median(spent)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "leaves"),
        with_stack=True,
    ) as prof:
        train(4, prof)
    return {"step_seconds": seconds, "augment_seconds": augment_seconds, "steps": 2}
