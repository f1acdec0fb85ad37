"""What is where in pictures of streets: 19 classes at a quarter of the resolution."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="logits of 19 classes are enlarged bicubically to all pixels, for a metric of each step",
    about="time",
    kind="expensive_op",
    culprit=r"upsample_bicubic2d",
    faulty_allowed=(r"expensive_op.*argmax",),
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(68)
    torch.set_num_threads(1)
    classes, height, width = 19, 128, 256

    class SceneNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 32, 5, stride=4, padding=2)
            self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
            self.conv3 = nn.Conv2d(64, 64, 3, padding=1)
            self.head = nn.Conv2d(64, classes, 1)

        def forward(self, images):
            x = torch.relu(self.conv1(images))
            x = torch.relu(self.conv2(x))
            return self.head(torch.relu(self.conv3(x)))

    model = SceneNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    spent = []

    @torch.no_grad()
    def pixel_accuracy(logits, labels):
        if faulty:
            logits = functional.interpolate(logits, size=labels.shape[1:], mode="bicubic")
            return (logits.argmax(1) == labels).float().mean()
        return (logits.argmax(1) == labels[:, ::4, ::4]).float().mean()

    def train_step(images, labels):
        logits = model(images)
        loss = functional.cross_entropy(logits, labels[:, ::4, ::4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        began = time.perf_counter()
        accuracy = pixel_accuracy(logits, labels)
        spent.append(time.perf_counter() - began)
        return accuracy

    def train(steps, prof=None):
        times = []
        images = torch.rand(3, 3, height, width)
        labels = torch.randint(classes, (3, height, width))
        for _ in range(steps):
            began = time.perf_counter()
            train_step(images, labels)
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    seconds = train(8)
    metric_seconds = median(spent)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(skip_first=2, wait=0, warmup=1, active=5, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "streets"),
        record_shapes=True,
        profile_memory=True,
    ) as prof:
        train(8, prof)
    return {"step_seconds": seconds, "metric_seconds": metric_seconds, "steps": 5}
