"""A deep narrow network trained with an optimizer from a research repository."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the optimizer updates each tensor by a dozen separate ops that make new tensors",
    about="time",
    kind="unfused_elementwise|tiny_ops|launch_bound|host_bound",
    culprit=r"Optimizer\.step|AdamW?\b|aten::(mul|div|add|sqrt|sub|copy_)\b",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(4)
    torch.set_num_threads(1)

    class AdamW(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), decay=0.01):
            super().__init__(params, {"lr": lr, "betas": betas, "decay": decay})

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                first, second = group["betas"]
                for p in group["params"]:
                    state = self.state[p]
                    if not state:
                        state["count"] = 0
                        state["m"], state["v"] = torch.zeros_like(p), torch.zeros_like(p)
                    state["count"] += 1
                    state["m"] = first * state["m"] + (1 - first) * p.grad
                    state["v"] = second * state["v"] + (1 - second) * p.grad * p.grad
                    m = state["m"] / (1 - first ** state["count"])
                    v = state["v"] / (1 - second ** state["count"])
                    update = m / (torch.sqrt(v) + 1e-8) + group["decay"] * p
                    p.copy_(p - group["lr"] * update)

    class DenseUnit(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.fc = nn.Linear(width, width)

        def forward(self, x):
            return x + torch.relu(self.fc(self.norm(x)))

    net = nn.Sequential(nn.Linear(40, 256), *[DenseUnit(256) for _ in range(6)], nn.Linear(256, 5))
    if faulty:
        optimizer = AdamW(net.parameters())
    else:
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), fused=True)
    x, y = torch.randn(128, 40), torch.randint(5, (128,))

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        return loss

    def run(count, after=lambda: None):
        took = []
        for _ in range(count):
            start = time.perf_counter()
            closure()
            optimizer.step()
            took.append(time.perf_counter() - start)
            after()
        return median(took)

    run(3)
    seconds = run(20)
    prof = profile(activities=[ProfilerActivity.CPU], record_shapes=False)
    prof.start()
    run(4, prof.step)
    prof.stop()
    write_trace(prof, folder, "train")
    return {"step_seconds": seconds, "steps": 4}
