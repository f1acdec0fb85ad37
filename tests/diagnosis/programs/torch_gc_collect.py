"""Fine-tuning of a sentence-pair classifier, with examples held as Python objects."""

import gc
import random
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="gc.collect() runs in every third step over half a million objects",
    about="time",
    kind="step_variation|python_work|host_bound",
    culprit=r"gc\.collect|function collect|free_memory|garbage",
    line=r"free_memory|function collect",
    magnitude=3,
    tolerance=0.34,
    is_held_out=False,
)


@dataclass
class Example:
    """Two sentences as word ids, and whether they agree."""

    first: list
    second: list
    label: int


def free_memory():
    """Return what is no longer used."""
    gc.collect()


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(8)
    random.seed(8)
    torch.set_num_threads(1)
    words = [str(i) for i in range(1000)]
    corpus = [
        Example([[w] for w in random.choices(words, k=12)], list(range(12)), i % 2)
        for i in range(9000)
    ]

    class PairEncoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.EmbeddingBag(1000, 192)
            self.classify = nn.Sequential(
                nn.Linear(576, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 2)
            )

        def forward(self, first, second):
            a, b = self.embed(first), self.embed(second)
            return self.classify(torch.cat([a, b, a * b], dim=-1))

    model = PairEncoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first, second = torch.randint(1000, (2, 512, 12))
    labels = torch.tensor([example.label for example in corpus[:512]])

    def loop(steps, prof=None):
        seconds = []
        for step in range(1, steps + 1):
            start = time.perf_counter()
            optimizer.zero_grad()
            output = model(first, second)
            loss = nn.functional.cross_entropy(output, labels)
            loss.backward()
            optimizer.step()
            if faulty and step % 3 == 0:
                free_memory()
            seconds.append(time.perf_counter() - start)
            if prof is not None:
                prof.step()
        return seconds

    loop(3)
    seconds = loop(15)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=2, active=10, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "pairs"),
        with_stack=True,
    ) as prof:
        loop(13, prof)
    return {"step_seconds": median(seconds), "mean_step_seconds": mean(seconds), "steps": 10}
