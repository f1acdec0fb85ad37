"""A Trainer class with callbacks that trains a small ResNet-like network from a DataLoader."""

import math
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="every sample is decoded and normalised in pure Python when it is fetched, no workers",
    about="time",
    kind="input_bound|python_work|host_bound|idle_between_steps",
    culprit=r"DataLoader|__getitem__|PlantDataset",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, record_function, schedule
    from torch.utils.data import DataLoader, Dataset

    torch.manual_seed(5)
    torch.set_num_threads(1)

    class PlantDataset(Dataset):
        def __init__(self, count=512, side=24):
            self.raw = torch.randint(0, 256, (count, 3 * side * side), dtype=torch.uint8)
            self.labels = torch.randint(12, (count,))
            self.side = side
            self.images = (self.raw / 255 - 0.5).div(0.25).view(count, 3, side, side)

        def __len__(self):
            return len(self.labels)

        def __getitem__(self, index):
            if faulty:
                pixels = bytes(self.raw[index].numpy())
                scaled = [(math.pow(p / 255, 1.0) - 0.5) / 0.25 for p in pixels]
                image = torch.tensor(scaled).view(3, self.side, self.side)
            else:
                image = self.images[index]
            return image, self.labels[index]

    class Residual(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.conv = nn.Conv2d(channels, channels, 3, padding=1)
            self.norm = nn.BatchNorm2d(channels)

        def forward(self, x):
            return torch.relu(x + self.norm(self.conv(x)))

    class StepTimer:
        def __init__(self):
            self.marks = []

        def on_batch_end(self):
            self.marks.append(time.perf_counter())

    class Trainer:
        def __init__(self, model, callbacks, prof=None):
            self.model, self.callbacks, self.prof = model, callbacks, prof
            self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

        def fit(self, loader):
            for images, labels in loader:
                with record_function("forward"):
                    loss = nn.functional.cross_entropy(self.model(images), labels)
                with record_function("backward"):
                    loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                for callback in self.callbacks:
                    callback.on_batch_end()
                if self.prof is not None:
                    self.prof.step()

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        Residual(16),
        Residual(16),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 12),
    )
    loader = DataLoader(PlantDataset(), batch_size=32, shuffle=True, num_workers=0)
    timer = StepTimer()
    Trainer(model, [timer]).fit(loader)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=2, warmup=2, active=6, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "plants"),
    ) as prof:
        Trainer(model, [], prof).fit(loader)
    steps = [b - a for a, b in zip(timer.marks, timer.marks[1:], strict=False)]
    return {"step_seconds": median(steps), "steps": 6}
