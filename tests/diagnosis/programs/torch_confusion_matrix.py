"""A classifier of small images, trained with a running confusion matrix, profiled step by step."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the confusion matrix is updated sample by sample, with .item() for each label",
    about="time",
    kind="host_sync|tiny_ops|python_work|host_bound|launch_bound",
    culprit=r"\bitem\b|_local_scalar_dense|ConfusionMatrix|train\.py\(\d+\): update",
    line=r"\bupdate\b",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn, profiler

    torch.manual_seed(1)
    torch.set_num_threads(1)

    class ConfusionMatrix:
        def __init__(self, classes):
            self.counts = torch.zeros(classes, classes, dtype=torch.long)

        def update(self, logits, labels):
            predicted = logits.argmax(dim=1)
            if faulty:
                for truth, guess in zip(labels, predicted, strict=True):
                    self.counts[truth.item(), guess.item()] += 1
            else:
                places = labels * len(self.counts) + predicted
                result = torch.bincount(places, minlength=self.counts.numel())
                self.counts += result.view_as(self.counts)

    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 16, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    matrix = ConfusionMatrix(10)
    images, labels = torch.randn(1024, 1, 14, 14), torch.randint(10, (1024,))

    def train_step(batch):
        rows = slice(batch % 8 * 64, batch % 8 * 64 + 64)
        logits = model(images[rows])
        loss = criterion(logits, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        matrix.update(logits.detach(), labels[rows])

    times = []
    for batch in range(24):
        start = time.perf_counter()
        train_step(batch)
        times.append(time.perf_counter() - start)
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        schedule=profiler.schedule(wait=1, warmup=1, active=4, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "mnist"),
        with_stack=True,
    ) as prof:
        for batch in range(8):
            train_step(batch)
            prof.step()
    return {"step_seconds": median(times[4:]), "steps": 4, "items_per_step": 128 if faulty else 0}
