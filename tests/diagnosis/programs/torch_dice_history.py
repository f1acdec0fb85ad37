"""Segmentation of scans with a history of losses and scores, as in many notebooks."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="the Dice score of every step is appended to a list with its graph, never backwarded",
    about="memory",
    kind="leak",
    culprit=r"dice_score|softmax",
    line=r"dice_score|train\.py",
    savings="leak|older_copy|precision|recompute",
    magnitude=4 * 4 * 128 * 128 * 4,
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(0)

    class DoubleConv(nn.Sequential):
        def __init__(self, inputs, outputs):
            super().__init__(
                nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()
            )

    class ScanNet(nn.Module):
        def __init__(self, organs=4):
            super().__init__()
            self.down = DoubleConv(1, 8)
            self.middle = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 16), nn.Upsample(None, 2))
            self.last = nn.Conv2d(24, organs, 1)

        def forward(self, scan):
            shallow = self.down(scan)
            return self.last(torch.cat([shallow, self.middle(shallow)], dim=1))

    def dice_score(logits, target):
        probabilities = torch.softmax(logits, dim=1)
        overlap = (probabilities * target).sum(dim=(2, 3))
        total = probabilities.sum(dim=(2, 3)) + target.sum(dim=(2, 3))
        return (2 * overlap / (total + 1e-6)).mean()

    scans = torch.randn(4, 1, 128, 128)
    organs = nn.functional.one_hot(torch.randint(4, (4, 128, 128)), 4).permute(0, 3, 1, 2).float()
    with MemorySnapshot(stacks="all") as gpu:
        gpu.record_memory_history()
        model = ScanNet().to("cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        history = {"loss": [], "dice": []}
        sizes = []

        def train_step(scan, target):
            scan, target = scan.to("cuda"), target.to("cuda")
            logits = model(scan)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, target)
            dice = dice_score(logits, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history["loss"].append(loss.item())
            history["dice"].append(dice if faulty else dice.item())

        for _step in range(12):
            train_step(scans, organs)
            sizes.append(gpu.in_use)
        gpu.dump(folder / "snapshot.pickle")
    growth = (sizes[-1] - sizes[2]) // 9
    return {"bytes_per_step": growth, "peak_bytes": gpu.peak, "steps": 12}
