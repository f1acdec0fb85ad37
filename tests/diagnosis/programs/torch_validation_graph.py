"""Forecasting of time series with a GRU-like convolutional net, validated after each epoch."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="validation runs without no_grad, and its predictions hold the graphs of all batches",
    about="memory",
    kind="peak_in_evaluation|peak_in_one_step|sawtooth|accumulated_in_step",
    culprit=r"validate|evaluat",
    line=r"validate",
    savings="older_copy|recompute|batch|temporary|precision",
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import record_function

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(5)

    class Forecaster(nn.Module):
        def __init__(self, channels=32):
            super().__init__()
            self.inp = nn.Conv1d(7, channels, 5, padding=2)
            self.mid = nn.ModuleList(nn.Conv1d(channels, channels, 5, padding=2) for _ in range(3))
            self.out = nn.Conv1d(channels, 7, 1)

        def forward(self, series):
            x = torch.relu(self.inp(series))
            for conv in self.mid:
                x = x + torch.relu(conv(x))
            return self.out(x)

    class Experiment:
        def __init__(self):
            self.model = Forecaster().to("cuda")
            self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

        def fit(self, batches):
            self.model.train()
            for x, y in batches:
                with record_function("fit_batch"):
                    loss = nn.functional.l1_loss(self.model(x.to("cuda")), y.to("cuda"))
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                    del loss

        def validate(self, batches):
            self.model.eval()
            errors = []
            with torch.set_grad_enabled(faulty), record_function("validate"):
                for x, y in batches:
                    errors.append((self.model(x.to("cuda")) - y.to("cuda")).abs().mean())
            return torch.stack(errors).mean().item()

    train = [torch.randn(2, 16, 7, 512).unbind() for _ in range(4)]
    valid = [torch.randn(2, 16, 7, 512).unbind() for _ in range(6)]
    with MemorySnapshot(annotations=True) as gpu:
        gpu.record_memory_history()
        experiment = Experiment()
        peaks = []
        for _epoch in range(2):
            experiment.fit(train)
            peaks.append(gpu.peak)
            experiment.validate(valid)
            peaks.append(gpu.peak)
        gpu.dump(folder / "snapshot.pickle")
    return {"peak_bytes": gpu.peak, "peak_before_evaluation": peaks[0], "steps": 8}
