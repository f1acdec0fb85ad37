"""Classify jets of particles from a NumPy archive that a Dataset reads from."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the Dataset indexes an open .npz, which reads the whole array for each sample",
    about="time",
    kind="input_bound|python_work|host_bound|idle_between_steps",
    culprit=r"JetDataset|__getitem__|NpzFile|_npyio|read_array|zipfile",
    line=r"__getitem__|npyio|read_array",
    round=3,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule
    from torch.utils.data import DataLoader, Dataset

    torch.manual_seed(5)
    torch.set_num_threads(1)
    rng = np.random.default_rng(5)
    np.savez(
        "jets.npz",
        particles=rng.standard_normal((600, 30, 16), np.float32),
        label=rng.integers(0, 5, 600),
    )

    class JetDataset(Dataset):
        def __init__(self, path):
            self.archive = np.load(path)
            self.labels = torch.from_numpy(self.archive["label"])
            if not faulty:
                self.archive = {"particles": self.archive["particles"]}

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, index):
            particles = self.archive["particles"][index]
            return torch.from_numpy(particles), self.labels[index]

    class DeepSet(nn.Module):
        """A network of each particle, a sum, and a network of the sum."""

        def __init__(self, features=16, width=512, classes=5):
            super().__init__()
            self.phi = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width))
            self.rho = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes))

        def forward(self, particles):
            return self.rho(self.phi(particles).sum(dim=1))

    dataset = JetDataset("jets.npz")
    loader = DataLoader(dataset, batch_size=8, shuffle=True, drop_last=True)
    model = DeepSet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

    def main(steps, prof=None):
        """One epoch of ``steps`` batches."""
        ended, times = time.perf_counter(), []
        for step, (particles, labels) in enumerate(loader):
            prediction = model(particles)
            loss = nn.functional.cross_entropy(prediction, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - ended)
            ended = time.perf_counter()
            if prof:
                prof.step()
            if step + 1 == steps:
                break
        return median(times)

    seconds = main(20)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "jets"),
        with_stack=True,
        record_shapes=True,
    ) as prof:
        main(4, prof)
    return {"step_seconds": seconds, "array_bytes": 600 * 30 * 16 * 4, "steps": 2}
