"""Crops of fields in satellite images: layers over the channels of each pixel, and convolutions."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="tensors are permuted and made contiguous before and after every layer over channels",
    about="time",
    kind="expensive_op|time_in_copies|unfused_elementwise",
    culprit=r"aten::(contiguous|clone|copy_)(?!\w)",
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(56)
    torch.set_num_threads(1)
    bands, width, crops = 12, 24, 9

    class OnChannels(nn.Module):
        """Applies a layer that wants the channels last."""

        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            x = x.permute(0, 2, 3, 1).contiguous()
            x = self.layer(x)
            return x.permute(0, 3, 1, 2).contiguous()

    class CropNet(nn.Module):
        def __init__(self):
            super().__init__()
            pixel = [nn.Linear(bands, width), nn.LayerNorm(width), nn.Linear(width, width)]
            if faulty:
                pixel = [OnChannels(layer) for layer in pixel]
            self.pixel = nn.Sequential(*pixel)
            self.spatial = nn.Conv2d(width, crops, 3, padding=1)

        def forward(self, images):
            if faulty:
                return self.spatial(self.pixel(images))
            return self.spatial(self.pixel(images.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))

    model = CropNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def train_step(images, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    images = torch.randn(4, bands, 96, 96).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(crops, (4, 96, 96))
    times = []
    for _ in range(15):
        began = time.perf_counter()
        train_step(images, labels)
        times.append(time.perf_counter() - began)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=2, warmup=1, active=5, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "crops"),
        record_shapes=True,
    ) as prof:
        for _ in range(8):
            train_step(images, labels)
            prof.step()
    return {"step_seconds": median(times[3:]), "steps": 5}
