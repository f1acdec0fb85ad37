"""A radiance field trained on random rays of photographs, with a positional encoding."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="a permutation of all pixels is drawn in each step, to take the first 128 of it",
    about="time",
    kind="expensive_op|input_bound|host_bound",
    culprit=r"randperm|sample_rays",
    line=r"sample_rays",
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    torch.manual_seed(25)
    torch.set_num_threads(1)
    height, width, n_rays, n_samples = 756, 1008, 128, 16

    class NeRF(nn.Module):
        def __init__(self, hidden=64, bands=4):
            super().__init__()
            self.register_buffer("bands", 2.0 ** torch.arange(bands))
            self.layers = nn.Sequential(
                nn.Linear(6 * bands, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
            )
            self.sigma, self.rgb = nn.Linear(hidden, 1), nn.Linear(hidden, 3)

        def forward(self, points):
            angles = (points.unsqueeze(-1) * self.bands).flatten(-2)
            x = self.layers(torch.cat([angles.sin(), angles.cos()], dim=-1))
            return torch.sigmoid(self.rgb(x)), torch.relu(self.sigma(x))

    def get_rays(pixels):
        x, y = pixels % width, pixels // width
        directions = torch.stack([x / width - 0.5, y / height - 0.5, -torch.ones(len(x))], dim=-1)
        return directions / directions.norm(dim=-1, keepdim=True)

    def sample_rays(image):
        if faulty:
            pixels = torch.randperm(height * width)[:n_rays]
        else:
            pixels = torch.randint(height * width, (n_rays,))
        return get_rays(pixels), image[pixels]

    def render_rays(directions):
        depths = torch.linspace(2.0, 6.0, n_samples)
        rgb, sigma = net(directions[:, None] * depths[:, None])
        alpha = 1 - torch.exp(-sigma.squeeze(-1) * (4.0 / n_samples))
        clear = torch.cumprod(1 - alpha + 1e-10, dim=-1)
        return ((alpha * clear).unsqueeze(-1) * rgb).sum(dim=1)

    net = NeRF()
    adam = torch.optim.Adam(net.parameters(), lr=5e-4)
    photographs = [torch.rand(height * width, 3) for _ in range(3)]

    def iteration(i):
        with record_function("rays"):
            directions, target = sample_rays(photographs[i % 3])
        with record_function("render"):
            loss = (render_rays(directions) - target).square().mean()
        with record_function("optimise"):
            adam.zero_grad()
            loss.backward()
            adam.step()

    took = []
    for i in range(24):
        t0 = time.perf_counter()
        iteration(i)
        took.append(time.perf_counter() - t0)
    prof = profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=4, repeat=1),
        on_trace_ready=lambda p: write_trace(p, folder, "rays"),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    )
    prof.start()
    for i in range(7):
        iteration(i)
        prof.step()
    prof.stop()
    return {"step_seconds": median(took[4:]), "pixels": height * width, "steps": 4}
