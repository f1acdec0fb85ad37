"""Which topics a text is about, with a log of what is predicted."""

import tempfile
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="all probabilities of every step are printed to a file, which is flushed at each line",
    about="time",
    kind="python_work|host_bound|host_sync",
    culprit=r"log_predictions",
    line=r"log_predictions",
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(58)
    torch.set_num_threads(1)
    words, topics, batch = 4000, 300, 64

    class TopicModel(nn.Module):
        def __init__(self, width=256):
            super().__init__()
            self.embed = nn.EmbeddingBag(words, width)
            self.hidden = nn.Linear(width, 1024)
            self.hidden2 = nn.Linear(1024, 1024)
            self.out = nn.Linear(1024, topics)

        def forward(self, texts):
            x = torch.relu(self.hidden(self.embed(texts)))
            return self.out(torch.relu(self.hidden2(x)))

    def log_predictions(file, step, logits):
        for row in torch.sigmoid(logits).tolist():
            print(step, row, file=file, flush=True)

    model = TopicModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    spent = []

    def train(steps, file, prof=None):
        times = []
        for step in range(steps):
            texts = torch.randint(words, (batch, 40))
            labels = torch.randint(2, (batch, topics)).float()
            began = time.perf_counter()
            logits = model(texts)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if faulty:
                before = time.perf_counter()
                log_predictions(file, step, logits.detach())
                spent.append(time.perf_counter() - before)
            elif step % 100 == 0:
                file.write(f"{step} {loss.item():.5f}\n")
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    with tempfile.TemporaryFile("w") as file:
        seconds = train(15, file)
        log_seconds = median(spent) if spent else 0.0
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=1, warmup=1, active=5, repeat=1),
            on_trace_ready=lambda prof: write_trace(prof, folder, "topics"),
            with_stack=True,
        ) as prof:
            train(7, file, prof)
    return {"step_seconds": seconds, "log_seconds": log_seconds, "steps": 5}
