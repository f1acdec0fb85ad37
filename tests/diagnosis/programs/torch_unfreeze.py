"""Fine-tuning in two phases: the optimizer is built anew when the backbone is unfrozen."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the first phase's optimizer, with its two moments, is still held by its scheduler",
    about="memory",
    kind="step_up|optimizer_state|redundant_copy|held_after_use|duplicate",
    culprit=r"_init_group|adamw?\.py|optimi[sz]er|zeros_like|moments",
    line=r"adamw?\.py|_init_group|train\.py",
    savings="duplicate|older_copy|precision|offload|optimizer|leak",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(9)

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = nn.Sequential(nn.Linear(512, 1280), nn.ReLU(), nn.Linear(1280, 1280))
            self.head = nn.Sequential(
                nn.ReLU(), nn.Linear(1280, 1280), nn.ReLU(), nn.Linear(1280, 8)
            )

        def forward(self, x):
            return self.head(self.backbone(x))

    class FineTuner:
        def __init__(self, model):
            self.model = model
            self.schedulers = []
            self.start_phase(1e-3)

        def start_phase(self, lr):
            if not faulty:
                self.schedulers.clear()
            self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr, foreach=True)
            self.schedulers.append(torch.optim.lr_scheduler.LinearLR(self.optimizer))

        def step(self, x, y):
            loss = nn.functional.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.schedulers[-1].step()

    inputs, labels = torch.randn(16, 512), torch.randint(8, (16,))
    with MemorySnapshot() as gpu:
        gpu.record_memory_history()
        tuner = FineTuner(Classifier().to("cuda"))
        sizes = []
        for step in range(12):
            if step == 5:
                tuner.start_phase(1e-4)
            tuner.step(inputs.to("cuda"), labels.to("cuda"))
            sizes.append(gpu.in_use)
        gpu.dump(folder / "snapshot.pickle")
    return {"peak_bytes": gpu.peak, "step_up_bytes": sizes[-1] - sizes[4], "steps": 12}
