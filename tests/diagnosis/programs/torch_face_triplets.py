"""Embeddings on top of a frozen face network, trained with batch-hard triplets."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="the loss picks positives and negatives of one anchor after another, in a Python loop",
    about="time",
    kind="tiny_ops|launch_bound|host_bound|python_work|expensive_op",
    culprit=r"batch_hard_loss|aten::(index|nonzero|select|ne|eq)\b",
    line=r"batch_hard_loss",
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(22)
    torch.set_num_threads(1)
    config = {"people": 4, "images": 3, "inputs": 1024, "margin": 0.2, "dim": 64, "lr": 0.01}

    class EmbeddingNet(nn.Module):
        def __init__(self, inputs, dim):
            super().__init__()
            self.hidden = nn.Sequential(nn.Linear(inputs, 512), nn.PReLU(), nn.Linear(512, 128))
            self.fc = nn.Linear(128, dim)

        def forward(self, x):
            return nn.functional.normalize(self.fc(torch.relu(self.hidden(x))))

    def batch_hard_loss(embeddings, labels, margin):
        distances = torch.cdist(embeddings, embeddings)
        same = labels[:, None] == labels[None]
        if not faulty:
            hardest = (distances * same).amax(dim=1)
            easiest = distances.masked_fill(same, torch.inf).amin(dim=1)
            return torch.relu(hardest - easiest + margin).mean()
        losses = []
        for i in range(len(labels)):
            positives = distances[i][labels == labels[i]]
            negatives = distances[i][labels != labels[i]]
            losses.append(torch.relu(positives.max() - negatives.min() + margin))
        return sum(losses) / len(losses)

    class FaceTrainer:
        def __init__(self, config):
            self.config = config
            self.net = EmbeddingNet(config["inputs"], config["dim"])
            self.opt = torch.optim.SGD(self.net.parameters(), lr=config["lr"], momentum=0.9)

        def run_batch(self, images, labels):
            self.opt.zero_grad()
            loss = batch_hard_loss(self.net(images), labels, self.config["margin"])
            loss.backward()
            self.opt.step()

        def run(self, batches, profiler=None):
            for images, labels in batches:
                start = time.perf_counter()
                self.run_batch(images, labels)
                yield time.perf_counter() - start
                if profiler is not None:
                    profiler.step()

    labels = torch.arange(config["people"]).repeat_interleave(config["images"])
    faces = torch.randn(len(labels), config["inputs"])
    trainer = FaceTrainer(config)
    took = list(trainer.run([(faces, labels)] * 24))
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=2, active=3, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "faces"),
        with_stack=True,
    ) as prof:
        list(trainer.run([(faces, labels)] * 6, prof))
    return {"step_seconds": median(took[4:]), "anchors": len(labels), "steps": 3}
