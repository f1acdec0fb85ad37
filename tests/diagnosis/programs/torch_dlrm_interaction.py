"""A click-through model of embeddings and dense features, with dot products of all their pairs."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the dot products of all pairs of features are computed one pair at a time in Python",
    about="time",
    kind="tiny_ops|launch_bound|host_bound|python_work",
    culprit=r"interaction|aten::(mul|sum|select)\b|MulBackward0|SelectBackward0",
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, record_function

    torch.manual_seed(7)
    torch.set_num_threads(1)
    sizes = [1000, 500, 2000, 300, 50, 800]

    class ClickModel(nn.Module):
        def __init__(self, width=16):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(rows, width) for rows in sizes)
            self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width))
            features = len(sizes) + 1
            self.top = nn.Sequential(
                nn.Linear(features * (features - 1) // 2 + width, 64), nn.ReLU(), nn.Linear(64, 1)
            )
            self.register_buffer("pairs", torch.tril_indices(features, features, -1))

        def interact(self, dense, sparse):
            stacked = torch.stack([dense, *sparse], dim=1)
            if faulty:
                dots = [
                    (stacked[:, i] * stacked[:, j]).sum(dim=1)
                    for i in range(stacked.shape[1])
                    for j in range(i)
                ]
                return torch.stack(dots, dim=1)
            products = torch.bmm(stacked, stacked.transpose(1, 2))
            return products[:, self.pairs[0], self.pairs[1]]

        def forward(self, dense, categories):
            with record_function("bottom_mlp"):
                dense = self.bottom(dense)
            with record_function("embeddings"):
                sparse = [table(categories[:, i]) for i, table in enumerate(self.tables)]
            with record_function("interaction"):
                dots = self.interact(dense, sparse)
            with record_function("top_mlp"):
                return self.top(torch.cat([dense, dots], dim=1)).squeeze(1)

    model = ClickModel()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    dense = torch.rand(2048, 13)
    categories = torch.stack([torch.randint(n, (2048,)) for n in sizes], dim=1)
    clicks = torch.randint(2, (2048,)).float()

    def run(iterations):
        seconds = []
        for _ in range(iterations):
            start = time.perf_counter()
            with record_function("train_iteration"):
                loss = F.binary_cross_entropy_with_logits(model(dense, categories), clicks)
                with record_function("backward"):
                    loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            seconds.append(time.perf_counter() - start)
        return median(seconds)

    run(3)
    step = run(30)
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        run(4)
    write_trace(prof, folder, "rank0")
    return {"step_seconds": step, "steps": 4, "pairs": 21}
