"""Semantic segmentation with a training module whose steps return outputs for epoch metrics."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="each step's full logits are appended to a list for metrics at the end of the epoch",
    about="memory",
    kind="leak|held_after_use|sawtooth",
    culprit=r"aten::\w*conv",
    savings="older_copy|leak|offload|precision",
    magnitude=8 * 6 * 64 * 64 * 4,
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(12)
    torch.set_num_threads(1)

    class UNet(nn.Module):
        def __init__(self, classes=6):
            super().__init__()
            self.down1 = nn.Conv2d(3, 8, 3, padding=1)
            self.down2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
            self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
            self.head = nn.Conv2d(16, classes, 1)

        def forward(self, x):
            a = torch.relu(self.down1(x))
            b = torch.relu(self.down2(a))
            return self.head(torch.cat([a, torch.relu(self.up(b))], dim=1))

    class SegmentationModule(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = UNet()
            self.training_step_outputs = []

        def training_step(self, batch):
            images, masks = batch
            logits = self.net(images)
            if faulty:
                self.training_step_outputs.append({"logits": logits.detach(), "masks": masks})
            else:
                right = (logits.detach()[0].argmax(dim=0) == masks[0]).float().mean()
                self.training_step_outputs.append({"accuracy": right})
            return nn.functional.cross_entropy(logits, masks)

        def on_train_epoch_end(self):
            first = self.training_step_outputs[0]
            if "logits" in first:
                right = [
                    (o["logits"].argmax(dim=1) == o["masks"]).float().mean()
                    for o in self.training_step_outputs
                ]
            else:
                right = [o["accuracy"] for o in self.training_step_outputs]
            self.training_step_outputs = []
            return sum(right) / len(right)

    module = SegmentationModule()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    batch = torch.randn(8, 3, 64, 64), torch.randint(6, (8, 64, 64))

    def epoch(batches, prof=None):
        times = []
        for _ in range(batches):
            began = time.perf_counter()
            loss = module.training_step(batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            del loss
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        module.on_train_epoch_end()
        return median(times)

    seconds = epoch(4)
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True
    ) as prof:
        epoch(12, prof)
    write_trace(prof, folder, "segmentation")
    leaked = 8 * 6 * 64 * 64 * 4 if faulty else 4
    return {"step_seconds": seconds, "bytes_per_step": leaked, "steps": 12}
