"""Predict which customers leave from a table, with a residual MLP and a small Trainer."""

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="anomaly detection is on: each gradient is searched for NaN, each op's stack is saved",
    about="time",
    kind="host_sync|tiny_ops|python_work|host_bound|launch_bound|expensive_op",
    # Recorded without stacks: what is seen of the switch are its checks, gradient by gradient.
    culprit=r"anomaly|aten::(isnan|any|ne|item|is_nonzero|_local_scalar_dense)\b",
    round=3,
)


@dataclass
class TrainerConfig:
    """What the command line would set."""

    batch_size: int = 256
    lr: float = 2e-3
    detect_anomaly: bool = False
    max_steps: int = 30


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(61)
    torch.set_num_threads(1)

    class ResidualBlock(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.linear = nn.Linear(width, width)

        def forward(self, x):
            return x + torch.relu(self.linear(self.norm(x)))

    class TabularResNet(nn.Module):
        def __init__(self, columns=48, width=96, depth=6):
            super().__init__()
            self.stem = nn.Linear(columns, width)
            self.blocks = nn.Sequential(*[ResidualBlock(width) for _ in range(depth)])
            self.head = nn.Linear(width, 1)

        def forward(self, x):
            return self.head(self.blocks(self.stem(x))).squeeze(1)

    class Trainer:
        def __init__(self, model, config):
            self.model, self.config = model, config
            self.optimizer = torch.optim.SGD(model.parameters(), config.lr, momentum=0.9)

        def training_step(self, batch):
            columns, left = batch
            return nn.functional.binary_cross_entropy_with_logits(self.model(columns), left)

        def fit(self, batches, on_step=None):
            seconds = []
            with torch.autograd.set_detect_anomaly(self.config.detect_anomaly):
                for batch in batches:
                    begun = time.perf_counter()
                    loss = self.training_step(batch)
                    loss.backward()
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    seconds.append(time.perf_counter() - begun)
                    if on_step:
                        on_step()
            return median(seconds)

    config = TrainerConfig(detect_anomaly=faulty)
    table = torch.randn(4096, 48)
    left = (table[:, 0] > 0.5).float()
    trainer = Trainer(TabularResNet(), config)

    def batches(count):
        for _ in range(count):
            rows = torch.randint(4096, (config.batch_size,))
            yield table[rows], left[rows]

    seconds = trainer.fit(batches(config.max_steps))
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "churn"),
        record_shapes=True,
        profile_memory=True,
    ) as prof:
        trainer.fit(batches(6), prof.step)
    return {"step_seconds": seconds, "steps": 3}
