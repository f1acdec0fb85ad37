"""Forecast of the load of a power grid by a deep network, with callbacks around each update."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="a callback joins all gradients to one vector, and holds that of the step before too",
    about="memory",
    kind="redundant_copy|held_after_use|huge_temporary|accumulated_in_step",
    culprit=r"flat_gradients|GradientDirection|before_update|aten::cat|\bcat\b",
    line=r"flat_gradients|GradientDirection|before_update",
    savings="duplicate|older_copy|temporary|offload|precision",
    round=4,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(46)
    torch.set_num_threads(1)
    hours, width = 168, 768

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.inner = nn.LayerNorm(width), nn.Linear(width, width)

        def forward(self, x):
            return x + self.inner(torch.relu(self.norm(x)))

    class LoadNet(nn.Module):
        def __init__(self, depth=6):
            super().__init__()
            self.enter = nn.Linear(hours, width)
            self.blocks = nn.Sequential(*(Residual() for _ in range(depth)))
            self.leave = nn.Linear(width, 24)

        def forward(self, loads):
            return self.leave(self.blocks(self.enter(loads)))

    class GradientNorm:
        """The length of the whole gradient, in a history."""

        def __init__(self):
            self.history = []

        def before_update(self, model):
            norms = torch._foreach_norm([p.grad for p in model.parameters()])
            self.history.append(torch.stack(norms).norm().item())

    class GradientDirection:
        """The cosine between the gradients of two steps, in a history."""

        def __init__(self):
            self.history, self.last = [], None

        def flat_gradients(self, model):
            return torch.cat([p.grad.reshape(-1) for p in model.parameters()])

        def before_update(self, model):
            flat = self.flat_gradients(model)
            if self.last is not None:
                lengths = flat.norm() * self.last.norm()
                self.history.append((flat.dot(self.last) / lengths).item())
            self.last = flat

    class Fitter:
        def __init__(self, model, callbacks):
            self.model, self.callbacks = model, callbacks
            self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

        def fit(self, batches):
            for loads, following in batches:
                forecast = self.model(loads.to("cuda"))
                loss = nn.functional.huber_loss(forecast, following.to("cuda"))
                self.optimizer.zero_grad()
                loss.backward()
                for callback in self.callbacks:
                    callback.before_update(self.model)
                self.optimizer.step()

    def load(batches, meters=64):
        for _ in range(batches):
            yield torch.randn(meters, hours), torch.randn(meters, 24)

    with MemorySnapshot(stacks="all") as gpu:
        gpu.record_memory_history()
        model = LoadNet().to("cuda")
        callback = GradientDirection() if faulty else GradientNorm()
        fitter = Fitter(model, [callback])
        fitter.fit(load(1))
        gpu.reset_peak()
        fitter.fit(load(9))
        gpu.dump(folder / "snapshot.pickle")
    weights = sum(p.numel() for p in model.parameters()) * 4
    return {"peak_bytes": gpu.peak, "gradient_bytes": weights, "steps": 10}
