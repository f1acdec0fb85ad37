"""Species of fish from features of sonar, with the weights of the best epoch."""

import copy
import tempfile
from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the best model is a deep copy on the device, made anew in each epoch beside the last",
    about="memory",
    kind="redundant_copy|held_after_use|step_up|peak_in_one_step|peak_outside_steps",
    culprit=r"remember_best|deepcopy|\bclone\b",
    line=r"remember_best|deepcopy",
    savings="duplicate|older_copy|offload|temporary",
    round=5,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(53)
    torch.set_num_threads(1)

    class SonarNet(nn.Module):
        def __init__(self, width=1024, species=12):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Linear(256, width), nn.ReLU(),
                nn.Linear(width, width), nn.ReLU(),
                nn.Linear(width, width), nn.ReLU(),
                nn.Linear(width, species),
            )  # fmt: skip

        def forward(self, echoes):
            return self.layers(echoes)

    class Best:
        def __init__(self, path):
            self.path, self.loss, self.model, self.times = path, float("inf"), None, 0

        def remember_best(self, model, loss):
            if loss >= self.loss:
                return
            self.loss = loss
            self.times += 1
            if faulty:
                self.model = copy.deepcopy(model)
            else:
                torch.save(model.state_dict(), self.path)

    def train_one_epoch(model, optimizer, loader):
        total = 0.0
        for echoes, species in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(echoes.to("cuda")), species.to("cuda"))
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total / len(loader)

    centres = torch.randn(12, 256)
    labels = [torch.randint(12, (64,)) for _ in range(4)]
    loader = [(centres[label] + torch.randn(64, 256), label) for label in labels]
    with tempfile.TemporaryDirectory() as weights, MemorySnapshot() as gpu:
        gpu.record_memory_history()
        model = SonarNet().to("cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        best = Best(Path(weights) / "best.pt")
        for _epoch in range(4):
            loss = train_one_epoch(model, optimizer, loader)
            best.remember_best(model, loss)
        gpu.dump(folder / "snapshot.pickle")
    weight_bytes = sum(p.numel() for p in model.parameters()) * 4
    return {
        "peak_bytes": gpu.peak,
        "weight_bytes": weight_bytes,
        "best_epochs": best.times,
        "steps": 16,
    }
