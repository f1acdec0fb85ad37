"""Embeddings of fashion photographs, with negatives out of a memory of the batches before."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the memory of 32,768 embeddings is moved up by torch.cat in each step, to add 16",
    about="time",
    kind="expensive_op|time_in_copies|redundant_copy|unfused_elementwise",
    culprit=r"aten::cat\b|\bcat\b",
    round=4,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(42)
    torch.set_num_threads(1)

    class CrossBatchMemory:
        """The last embeddings, as negatives for those of now."""

        def __init__(self, size=32_768, width=256):
            self.features = functional.normalize(torch.randn(size, width), dim=1)
            self.labels = torch.randint(5000, (size,))
            self.place = 0

        def enqueue(self, features, labels):
            count = len(features)
            if faulty:
                self.features = torch.cat([self.features[count:], features])
                self.labels = torch.cat([self.labels[count:], labels])
                return
            self.features[self.place : self.place + count] = features
            self.labels[self.place : self.place + count] = labels
            self.place = (self.place + count) % len(self.labels)

        def loss(self, features, labels, margin=0.4):
            similarity = features @ self.features.t()
            same = labels.unsqueeze(1) == self.labels
            positive = (1 - similarity)[same].sum()
            return (positive + functional.relu(similarity - margin).sum()) / len(labels)

    class Encoder(nn.Module):
        def __init__(self, width=256):
            super().__init__()
            self.convs = nn.Sequential(
                nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(),
                nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
                nn.AdaptiveAvgPool2d(4), nn.Flatten(),
            )  # fmt: skip
            self.head = nn.Linear(512, width)

        def forward(self, photos):
            return functional.normalize(self.head(self.convs(photos)), dim=1)

    encoder, memory = Encoder(), CrossBatchMemory()
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01, momentum=0.9)
    photos, items = torch.randn(16, 3, 48, 48), torch.randint(5000, (16,))

    def train(steps, prof=None):
        times, moves = [], []
        for _ in range(steps):
            began = time.perf_counter()
            features = encoder(photos)
            loss = memory.loss(features, items)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            queued = time.perf_counter()
            memory.enqueue(features.detach(), items)
            times.append(time.perf_counter() - began)
            moves.append(time.perf_counter() - queued)
            if prof:
                prof.step()
        return median(times), median(moves)

    train(5)
    seconds, moving = train(25)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=5, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "memory"),
        record_shapes=True,
    ) as prof:
        train(8, prof)
    return {"step_seconds": seconds, "enqueue_seconds": moving, "steps": 5}
