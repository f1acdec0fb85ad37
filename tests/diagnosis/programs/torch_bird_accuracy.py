"""Which bird sings, from pictures of its song, with the accuracy of each batch."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the accuracy of each batch runs the model a second time, though its logits are there",
    about="time",
    kind="expensive_op|python_work|host_bound",
    culprit=r"\baccuracy\b",
    line=r"\baccuracy\b",
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(74)
    torch.set_num_threads(1)

    class SongNet(nn.Module):
        def __init__(self, birds=40):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 32, 9, stride=2, padding=4)
            self.conv2 = nn.Conv2d(32, 32, 3, padding=1)
            self.out = nn.Linear(32, birds)

        def forward(self, songs):
            x = torch.relu(self.conv1(songs))
            x = torch.relu(self.conv2(x))
            return self.out(x.mean(dim=(2, 3)))

    model = SongNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    metric = []

    def accuracy(songs, logits, birds):
        if faulty:
            with torch.no_grad():
                logits = model(songs)
        return (logits.argmax(dim=1) == birds).float().mean()

    def train(steps, prof=None):
        times = []
        for _ in range(steps):
            songs, birds = torch.randn(16, 1, 64, 64), torch.randint(40, (16,))
            began = time.perf_counter()
            optimizer.zero_grad()
            logits = model(songs)
            loss = nn.functional.cross_entropy(logits, birds)
            loss.backward()
            optimizer.step()
            before = time.perf_counter()
            accuracy(songs, logits, birds)
            times.append(time.perf_counter() - began)
            metric.append(time.perf_counter() - before)
            if prof:
                prof.step()
        return median(times)

    seconds = train(10)
    metric_seconds = median(metric)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=6, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "songs"),
        record_shapes=True,
        with_stack=True,
    ) as prof:
        train(8, prof)
    return {"step_seconds": seconds, "accuracy_seconds": metric_seconds, "steps": 6}
