"""An autoencoder with a Lightning-like loop: hooks at the start and the end of every batch."""

import tempfile
import time
from pathlib import Path
from statistics import mean, median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="a checkpoint of model and optimizer is written after every fourth batch",
    about="time",
    kind="step_variation|host_bound|python_work",
    culprit=r"ModelCheckpoint",
    magnitude=4,
    tolerance=0.25,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import profile, record_function, schedule

    torch.manual_seed(9)
    torch.set_num_threads(1)
    place = Path(tempfile.mkdtemp())

    class AutoEncoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 32))
            self.decoder = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 784))

        def forward(self, x):
            return self.decoder(self.encoder(x))

        def training_step(self, batch):
            return nn.functional.mse_loss(self(batch), batch)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-3, fused=True)

    class Callback:
        def on_train_batch_start(self, trainer, batch):
            pass

        def on_train_batch_end(self, trainer, batch):
            pass

    class ModelCheckpoint(Callback):
        def __init__(self, every_n_train_steps):
            self.every = every_n_train_steps

        def on_train_batch_end(self, trainer, batch):
            if (batch + 1) % self.every == 0:
                self.save_checkpoint(trainer)

        def save_checkpoint(self, trainer):
            state = {
                "model": trainer.module.state_dict(),
                "optimizer": trainer.optimizer.state_dict(),
            }
            torch.save(state, place / "last.ckpt")

    class Trainer:
        def __init__(self, callbacks, profiler=None):
            self.callbacks, self.profiler = callbacks, profiler
            self.took = []

        def call(self, hook, index):
            for callback in self.callbacks:
                with record_function(f"[Callback]{type(callback).__name__}.{hook}"):
                    getattr(callback, hook)(self, index)

        def fit(self, module, batches):
            self.module, self.optimizer = module, module.configure_optimizers()
            for index, batch in enumerate(batches):
                began = time.perf_counter()
                self.call("on_train_batch_start", index)
                with record_function("training_step"):
                    loss = module.training_step(batch)
                loss.backward()
                with record_function("optimizer_step"):
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                self.call("on_train_batch_end", index)
                self.took.append(time.perf_counter() - began)
                if self.profiler:
                    self.profiler.step()

    batches = [torch.rand(48, 784) for _ in range(16)]
    checkpoint = ModelCheckpoint(every_n_train_steps=4 if faulty else 1000)
    trainer = Trainer([checkpoint])
    trainer.fit(AutoEncoder(), batches)
    with profile(
        schedule=schedule(wait=1, warmup=2, active=12, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "autoencoder"),
    ) as prof:
        Trainer([checkpoint], prof).fit(AutoEncoder(), batches)
    took = trainer.took[1:]
    return {"step_seconds": median(took), "mean_step_seconds": mean(took), "steps": 12}
