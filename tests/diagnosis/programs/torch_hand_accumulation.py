"""Pretraining of a wide masked autoencoder, with gradients of several chunks added up."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="gradients are added up in a dictionary of copies, beside the .grad of all parameters",
    about="memory",
    kind="redundant_copy|held_after_use|accumulated_in_step|huge_temporary",
    culprit=r"add_gradients|write_back",
    line=r"add_gradients|write_back",
    savings="duplicate|older_copy|temporary|precision",
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(33)

    class Autoencoder(nn.Module):
        def __init__(self, inputs=256, width=1024):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(inputs, width), nn.GELU())
            layers = [layer for _ in range(6) for layer in (nn.Linear(width, width), nn.GELU())]
            self.middle = nn.Sequential(*layers)
            self.decoder = nn.Linear(width, inputs)

        def forward(self, x, mask):
            out = self.decoder(self.middle(self.encoder(x * mask)))
            return ((out - x) * (1 - mask)).square().mean()

    class Pretraining:
        def __init__(self, chunks):
            self.model = Autoencoder().cuda()
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
            self.chunks = chunks
            self.total = {}

        def add_gradients(self):
            for name, p in self.model.named_parameters():
                if name in self.total:
                    self.total[name] += p.grad / self.chunks
                else:
                    self.total[name] = p.grad.clone() / self.chunks

        def write_back(self):
            for name, p in self.model.named_parameters():
                p.grad.copy_(self.total[name])
            self.total.clear()

        def step(self, batch):
            self.optimizer.zero_grad()
            for rows in batch.cuda().chunk(self.chunks):
                loss = self.model(rows, (torch.rand(rows.shape, device="cuda") > 0.75).float())
                if faulty:
                    loss.backward()
                    self.add_gradients()
                    self.optimizer.zero_grad(set_to_none=False)
                else:
                    (loss / self.chunks).backward()
            if faulty:
                self.write_back()
            self.optimizer.step()

    with MemorySnapshot() as gpu:
        run = Pretraining(chunks=4)
        gpu.record_memory_history()
        for _ in range(8):
            run.step(torch.randn(64, 256))
        gpu.dump(folder / "snapshot.pickle")
    gradients = sum(p.numel() * 4 for p in run.model.parameters())
    return {"peak_bytes": gpu.peak, "gradient_bytes": gradients, "steps": 8}
