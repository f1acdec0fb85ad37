"""The family of a protein from words of three letters each, by convolutions."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

WORDS, LENGTH, BATCH = 8000, 96, 8

PAIR = Pair(
    fault="words are one-hot vectors times a matrix, in place of indices of an embedding",
    about="memory",
    kind="huge_temporary|held_after_use|accumulated_in_step",
    culprit=r"one_hot|aten::(zeros|scatter_?|to|_to_copy)(?!\w)",
    savings="temporary|precision|recompute",
    faulty_allowed=(
        r"(expensive_op|unfused_elementwise|churn).*(one_hot|scatter|zero|fill_|to\b)",
    ),
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(52)
    torch.set_num_threads(1)

    class ProteinNet(nn.Module):
        def __init__(self, width=96, families=30):
            super().__init__()
            if faulty:
                self.words = nn.Linear(WORDS, width, bias=False)
            else:
                self.words = nn.Embedding(WORDS, width)
            self.conv1 = nn.Conv1d(width, width, 9, padding=4)
            self.conv2 = nn.Conv1d(width, width, 9, padding=4)
            self.out = nn.Linear(width, families)

        def forward(self, words):
            if faulty:
                words = functional.one_hot(words, WORDS).float()
            x = self.words(words).transpose(1, 2)
            x = functional.relu(self.conv1(x))
            x = functional.relu(self.conv2(x))
            return self.out(x.mean(dim=2))

    model = ProteinNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def train_step(words, families):
        loss = functional.cross_entropy(model(words), families)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def train(steps, prof=None):
        times = []
        for _ in range(steps):
            words = torch.randint(WORDS, (BATCH, LENGTH))
            families = torch.randint(30, (BATCH,))
            began = time.perf_counter()
            train_step(words, families)
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    seconds = train(8)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=5),
        on_trace_ready=lambda prof: write_trace(prof, folder, "proteins"),
        record_shapes=True,
        profile_memory=True,
    ) as prof:
        train(7, prof)
    one_hot = BATCH * LENGTH * WORDS * (8 + 4) if faulty else 0
    return {"step_seconds": seconds, "one_hot_bytes": one_hot, "steps": 5}
