"""Calls of whales in spectra of sound: training goes on from a checkpoint."""

import tempfile
from pathlib import Path

from tests.diagnosis.pair import Pair

BANDS, WIDTH, CALLS = 512, 1536, 20
WEIGHT_BYTES = 4 * (BANDS * WIDTH + 3 * WIDTH * WIDTH + WIDTH * CALLS + 4 * WIDTH + CALLS)

PAIR = Pair(
    fault="the checkpoint that training began from is moved to the device, and held to the end",
    about="memory",
    kind="redundant_copy|held_after_use|peak_outside_steps",
    culprit=r"load_checkpoint",
    line=r"load_checkpoint",
    savings="duplicate|older_copy|offload",
    magnitude=WEIGHT_BYTES,
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(61)
    torch.set_num_threads(1)

    def make_model():
        return nn.Sequential(
            nn.Linear(BANDS, WIDTH), nn.ReLU(),
            nn.Linear(WIDTH, WIDTH), nn.ReLU(),
            nn.Linear(WIDTH, WIDTH), nn.ReLU(),
            nn.Linear(WIDTH, WIDTH), nn.ReLU(),
            nn.Linear(WIDTH, CALLS),
        )  # fmt: skip

    def load_checkpoint(saved):
        if faulty:
            model = {name: weight.to("cuda") for name, weight in saved["model"].items()}
            return {**saved, "model": model}
        return saved

    def train_one_epoch(model, optimizer, loader):
        for spectra, calls in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(spectra.to("cuda")), calls.to("cuda"))
            loss.backward()
            optimizer.step()

    loader = [(torch.randn(64, BANDS), torch.randint(CALLS, (64,))) for _ in range(4)]
    with tempfile.TemporaryDirectory() as runs:
        path = Path(runs) / "last.pt"
        torch.save({"model": make_model().state_dict(), "epoch": 7}, path)
        saved = torch.load(path, map_location="cpu")
    with MemorySnapshot() as gpu:
        gpu.record_memory_history()
        model = make_model().to("cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        checkpoint = load_checkpoint(saved)
        model.load_state_dict(checkpoint["model"])
        for _epoch in range(checkpoint["epoch"], 10):
            train_one_epoch(model, optimizer, loader)
        gpu.dump(folder / "whales.pickle")
    return {"peak_bytes": gpu.peak, "weight_bytes": WEIGHT_BYTES, "steps": 12}
