"""Energies of molecules by continuous filters over the distances between atoms."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the centres of the Gaussians are NumPy's float64, which makes their whole expansion so",
    about="memory",
    kind="float64",
    culprit=r"GaussianSmearing|aten::(exp|sub|pow|mul)\b",
    line=r"GaussianSmearing|forward",
    savings="precision|temporary",
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(27)
    torch.set_num_threads(1)

    class GaussianSmearing(nn.Module):
        def __init__(self, start=0.0, stop=5.0, num_gaussians=50, width=0.5):
            super().__init__()
            offset = torch.from_numpy(np.linspace(start, stop, num_gaussians))
            if not faulty:
                offset = offset.float()
            self.coeff = -0.5 / width**2
            self.register_buffer("offset", offset)

        def forward(self, dist):
            dist = dist.view(-1, 1) - self.offset.view(1, -1)
            return torch.exp(self.coeff * torch.pow(dist, 2)).float()

    class CFConv(nn.Module):
        def __init__(self, num_gaussians, num_filters):
            super().__init__()
            self.mlp = nn.Linear(num_gaussians, num_filters)
            self.lin = nn.Linear(num_filters, num_filters)

        def forward(self, x, src, dst, rbf):
            messages = x[src] * nn.functional.softplus(self.mlp(rbf))
            return x + self.lin(torch.zeros_like(x).index_add_(0, dst, messages))

    class SchNet(nn.Module):
        def __init__(self, hidden=8):
            super().__init__()
            self.embedding = nn.Embedding(20, hidden)
            self.distance_expansion = GaussianSmearing()
            self.interaction = CFConv(50, hidden)
            self.readout = nn.Linear(hidden, 1)

        def forward(self, z, pos, src, dst):
            rbf = self.distance_expansion((pos[src] - pos[dst]).norm(dim=-1))
            h = self.interaction(self.embedding(z), src, dst, rbf)
            return self.readout(h).sum()

    z, pos = torch.randint(20, (1200,)), torch.rand(1200, 3) * 3
    src, dst = torch.randint(1200, (2, 16000))
    energy = torch.tensor(-3.0)
    model = SchNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, amsgrad=True)

    def train_step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.l1_loss(model(z, pos, src, dst), energy)
        loss.backward()
        optimizer.step()

    took = []
    for _ in range(20):
        start = time.perf_counter()
        train_step()
        took.append(time.perf_counter() - start)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=5, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "schnet"),
        record_shapes=True,
        with_stack=True,
        profile_memory=True,
        with_modules=True,
    ) as prof:
        for _ in range(7):
            train_step()
            prof.step()
    return {"step_seconds": median(took[4:]), "rbf_bytes": 16000 * 50 * 8, "steps": 5}
