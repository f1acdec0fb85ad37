"""Kinds of heartbeats in an electrocardiogram, by a deep network of residual layers."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="each norm and activation is computed in double, with a cast before and one after",
    about="time",
    kind="expensive_op|float64_compute|unfused_elementwise",
    culprit=r"aten::(to|_to_copy|copy_)(?!\w)",
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(57)
    torch.set_num_threads(1)

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.linear = nn.Linear(width, width)
            if faulty:
                self.norm.double()

        def forward(self, x):
            if faulty:
                h = self.norm(x.double()).float()
                h = functional.gelu(self.linear(h).double()).float()
            else:
                h = functional.gelu(self.linear(self.norm(x)))
            return x + h

    class BeatNet(nn.Module):
        def __init__(self, width=64, depth=5, kinds=5):
            super().__init__()
            self.enter = nn.Conv1d(2, width, 7, stride=2, padding=3)
            self.layers = nn.Sequential(*(Layer(width) for _ in range(depth)))
            self.leave = nn.Linear(width, kinds)

        def forward(self, beats):
            x = self.enter(beats).transpose(1, 2).contiguous()
            return self.leave(self.layers(x).mean(dim=1))

    model = BeatNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    beats, kinds = torch.randn(16, 2, 256), torch.randint(5, (16,))

    def train(steps, prof=None):
        times = []
        for _ in range(steps):
            began = time.perf_counter()
            loss = functional.cross_entropy(model(beats), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    seconds = train(15)
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        train(6, prof)
    write_trace(prof, folder, "heartbeats")
    return {"step_seconds": seconds, "steps": 6}
