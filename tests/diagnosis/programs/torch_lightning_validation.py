"""Classification of plankton images by a trainer with hooks, which validates as it goes."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="validation over the whole validation set runs after every third training batch",
    about="time",
    kind="step_variation|idle_between_steps|host_bound",
    culprit=r"validation_loop|validation_step",
    magnitude=3,
    tolerance=0.0,
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    torch.manual_seed(30)
    torch.set_num_threads(1)

    class PlanktonModule(nn.Module):
        def __init__(self, classes=20):
            super().__init__()
            self.stem = nn.Conv2d(1, 16, 5, stride=2)
            self.layer = nn.Conv2d(16, 32, 3)
            self.head = nn.Linear(32, classes)

        def forward(self, x):
            x = torch.relu(self.layer(torch.relu(self.stem(x))))
            return self.head(x.mean(dim=(2, 3)))

        def training_step(self, batch):
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def validation_step(self, batch):
            return (self(batch[0]).argmax(1) == batch[1]).float().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    class Trainer:
        def __init__(self, val_check_interval, profiler=None):
            self.val_check_interval = val_check_interval
            self.profiler = profiler
            self.batch_seconds = []

        def fit(self, module, train_batches, val_batches):
            optimizer = module.configure_optimizers()
            for index, batch in enumerate(train_batches, 1):
                start = time.perf_counter()
                with record_function("[Trainer]run_training_batch"):
                    loss = module.training_step(batch)
                    with record_function("[Trainer]backward"):
                        loss.backward()
                    with record_function("[Trainer]optimizer_step"):
                        optimizer.step()
                        optimizer.zero_grad()
                if index % self.val_check_interval == 0:
                    self.validate(module, val_batches)
                self.batch_seconds.append(time.perf_counter() - start)
                if self.profiler:
                    self.profiler.step()

        def validate(self, module, val_batches):
            with record_function("[Trainer]validation_loop"), torch.no_grad():
                module.eval()
                scores = [module.validation_step(batch) for batch in val_batches]
                module.train()
            return torch.stack(scores).mean()

    def batches(count):
        return [(torch.randn(16, 1, 40, 40), torch.randint(20, (16,))) for _ in range(count)]

    interval = 3 if faulty else 300
    module, train, val = PlanktonModule(), batches(17), batches(8)
    trainer = Trainer(interval)
    trainer.fit(module, train, val)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=15),
        on_trace_ready=lambda prof: write_trace(prof, folder, "fit"),
    ) as prof:
        Trainer(interval, prof).fit(module, train, val)
    seconds = trainer.batch_seconds[2:]
    return {
        "step_seconds": median(seconds),
        "mean_step_seconds": sum(seconds) / len(seconds),
        "interval": interval,
        "steps": 15,
    }
