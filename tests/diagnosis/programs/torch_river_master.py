"""Levels of rivers from rain, with weights that an optimizer of its own moves."""

from pathlib import Path

from tests.diagnosis.pair import Pair

DAYS, WIDTH, RIVERS = 600, 1408, 50
WEIGHT_BYTES = 4 * (DAYS * WIDTH + 2 * WIDTH * WIDTH + WIDTH * RIVERS + 3 * WIDTH + RIVERS)

PAIR = Pair(
    fault="master copies in float32 are made of weights that are float32 already",
    about="memory",
    kind="redundant_copy|held_after_use",
    culprit=r"make_master",
    line=r"make_master",
    savings="duplicate|copy|older_copy|offload",
    magnitude=WEIGHT_BYTES,
    round=7,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(78)
    torch.set_num_threads(1)

    def make_master(model):
        if faulty:
            return [weight.detach().clone().float() for weight in model.parameters()]
        return [weight.detach().float() for weight in model.parameters()]

    def train_step(model, master, optimizer, rain, levels):
        loss = nn.functional.mse_loss(model(rain), levels)
        loss.backward()
        for weight, copy in zip(model.parameters(), master, strict=True):
            copy.grad = weight.grad.float()
            weight.grad = None
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for weight, copy in zip(model.parameters(), master, strict=True):
                weight.copy_(copy)

    model = nn.Sequential(
        nn.Linear(DAYS, WIDTH), nn.ReLU(),
        nn.Linear(WIDTH, WIDTH), nn.ReLU(),
        nn.Linear(WIDTH, WIDTH), nn.ReLU(),
        nn.Linear(WIDTH, RIVERS),
    )  # fmt: skip
    loader = [(torch.randn(96, DAYS), torch.randn(96, RIVERS)) for _ in range(8)]
    with MemorySnapshot() as gpu:
        gpu.record_memory_history()
        model = model.to("cuda")
        master = make_master(model)
        optimizer = torch.optim.SGD(master, lr=0.01)
        for rain, levels in loader:
            train_step(model, master, optimizer, rain.to("cuda"), levels.to("cuda"))
        gpu.dump(folder / "rivers.pickle")
    return {"peak_bytes": gpu.peak, "weight_bytes": WEIGHT_BYTES, "steps": 8}
