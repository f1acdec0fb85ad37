"""A critic of portraits whose layers must not have large spectral norms."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the spectral norm of each weight is taken from its singular values in every step",
    about="time",
    kind="expensive_op",
    culprit=r"svd",
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    torch.manual_seed(66)
    torch.set_num_threads(1)
    pixels, width = 768, 256

    critic = nn.Sequential(
        nn.Linear(pixels, width), nn.LeakyReLU(0.2),
        nn.Linear(width, width), nn.LeakyReLU(0.2),
        nn.Linear(width, width), nn.LeakyReLU(0.2),
        nn.Linear(width, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    weights = [layer.weight for layer in critic if isinstance(layer, nn.Linear)]
    vectors = [torch.randn(weight.shape[0]) for weight in weights]
    spent = []

    def spectral_norm(weight, vector):
        if faulty:
            return torch.linalg.matrix_norm(weight, ord=2)
        with torch.no_grad():
            right = nn.functional.normalize(weight.T @ vector, dim=0)
            vector.copy_(nn.functional.normalize(weight @ right, dim=0))
        return vector @ (weight @ right)

    def train_step(real, fake):
        optimizer.zero_grad()
        loss = torch.relu(1 - critic(real)).mean() + torch.relu(1 + critic(fake)).mean()
        began = time.perf_counter()
        for weight, vector in zip(weights, vectors, strict=True):
            loss = loss + 0.01 * torch.relu(spectral_norm(weight, vector) - 1)
        spent.append(time.perf_counter() - began)
        loss.backward()
        optimizer.step()

    def train(steps, prof=None):
        times = []
        real, fake = torch.randn(512, pixels), torch.randn(512, pixels)
        for _ in range(steps):
            began = time.perf_counter()
            with record_function("critic_step"):
                train_step(real, fake)
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    seconds = train(8)
    norm_seconds = median(spent)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=5, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "critic"),
        record_shapes=True,
    ) as prof:
        train(7, prof)
    return {"step_seconds": seconds, "norm_seconds": norm_seconds, "steps": 5}
