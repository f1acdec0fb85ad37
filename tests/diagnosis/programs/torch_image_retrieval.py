"""Metric learning on embeddings: each batch mines hard examples from a memory bank."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the whole similarity matrix is sorted to take the first 8 of each row",
    about="time",
    kind="expensive_op",
    culprit=r"aten::(sort|argsort)\b",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn, profiler

    torch.manual_seed(2)
    torch.set_num_threads(1)
    bank = F.normalize(torch.randn(4096, 64), dim=1)
    bank_labels = torch.randint(200, (4096,))

    encoder = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
    encoder.append(nn.Linear(512, 64))
    opt = torch.optim.Adam(encoder.parameters(), lr=1e-4)

    def hardest(similarity, labels, count=8):
        masked = similarity.masked_fill(labels[:, None] == bank_labels[None], -2.0)
        if faulty:
            return masked.sort(dim=1, descending=True)[0][:, :count]
        return masked.topk(count, dim=1).values

    def step(inputs, labels):
        z = F.normalize(encoder(inputs), dim=1)
        similarity = z @ bank.t()
        positive = similarity.gather(1, labels[:, None])
        negatives = hardest(similarity, labels)
        loss = F.relu(0.2 + negatives - positive).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

    inputs, labels = torch.randn(128, 512), torch.randint(200, (128,))
    seconds = []
    for _ in range(12):
        began = time.perf_counter()
        step(inputs, labels)
        seconds.append(time.perf_counter() - began)
    with profiler.profile(
        schedule=profiler.schedule(wait=1, warmup=1, active=8, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "retrieval"),
    ) as prof:
        for _ in range(11):
            step(inputs, labels)
            prof.step()
    return {"step_seconds": median(seconds[2:]), "steps": 8}
