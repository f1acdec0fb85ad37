"""Few-shot learning: distances of queries to class prototypes are the logits."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="pairwise distances by broadcasting make a tensor of queries x prototypes x features",
    about="memory",
    kind="huge_temporary",
    culprit=r"aten::(sub|pow|mul)\b|PowBackward0|SubBackward0|euclidean_dist",
    line=r"train\.py.*euclidean_dist",
    savings="temporary|recompute",
    # The same tensors are the time of the step too.
    faulty_allowed=(r"(expensive_op|unfused_elementwise|churn).*(sub|pow|sum|mul)",),
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(13)
    torch.set_num_threads(1)

    def euclidean_dist(x, y):
        if faulty:
            n, m, d = x.size(0), y.size(0), x.size(1)
            x = x.unsqueeze(1).expand(n, m, d)
            y = y.unsqueeze(0).expand(n, m, d)
            return torch.pow(x - y, 2).sum(2)
        squares = x.square().sum(1, keepdim=True) + y.square().sum(1)
        return torch.addmm(squares, x, y.t(), alpha=-2)

    def conv_block(inputs, outputs):
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )

    class ProtoNet(nn.Module):
        def __init__(self, way):
            super().__init__()
            self.way = way
            self.encoder = nn.Sequential(conv_block(1, 8), conv_block(8, 16), nn.Flatten())

        def loss(self, support, query, labels):
            prototypes = self.encoder(support).view(self.way, -1, 784).mean(1)
            return nn.functional.cross_entropy(
                -euclidean_dist(self.encoder(query), prototypes), labels
            )

    model = ProtoNet(way=20)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    support, query = torch.randn(60, 1, 28, 28), torch.randn(200, 1, 28, 28)
    labels = torch.arange(20).repeat(10)

    def episodes(count, prof=None):
        times = []
        for _ in range(count):
            began = time.perf_counter()
            optimizer.zero_grad()
            loss = model.loss(support, query, labels)
            loss.backward()
            optimizer.step()
            del loss
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    seconds = episodes(6)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "omniglot"),
        profile_memory=True,
        with_stack=True,
        record_shapes=True,
    ) as prof:
        episodes(6, prof)
    temporary = 200 * 20 * 784 * 4
    return {"step_seconds": seconds, "temporary_bytes": temporary if faulty else 0, "steps": 3}
