"""Kinds of plankton in pictures of a microscope."""

from pathlib import Path

from tests.diagnosis.pair import Pair

BATCHES, BATCH, SIZE = 12, 32, 96
IMAGE_BYTES = BATCH * 3 * SIZE * SIZE * 4

PAIR = Pair(
    fault="all batches of an epoch are moved to the device in a list before its first step",
    about="memory",
    kind="batches_ahead|held_after_use|sawtooth|peak_in_one_step|peak_outside_steps",
    culprit=r"batches_of_epoch",
    line=r"batches_of_epoch",
    savings="offload|older_copy|batch",
    magnitude=BATCHES * IMAGE_BYTES,
    round=6,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(62)
    torch.set_num_threads(1)

    class PlanktonNet(nn.Module):
        def __init__(self, kinds=18):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 16, 5, stride=4, padding=2)
            self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
            self.fc1 = nn.Linear(32 * 12 * 12, 256)
            self.fc2 = nn.Linear(256, kinds)

        def forward(self, images):
            x = torch.relu(self.conv1(images))
            x = torch.relu(self.conv2(x))
            return self.fc2(torch.relu(self.fc1(x.flatten(1))))

    def batches_of_epoch(loader):
        batches = ((images.to("cuda"), kinds.to("cuda")) for images, kinds in loader)
        return list(batches) if faulty else batches

    def train_one_epoch(model, optimizer, loader):
        for images, kinds in batches_of_epoch(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), kinds)
            loss.backward()
            optimizer.step()

    loader = [
        (torch.rand(BATCH, 3, SIZE, SIZE), torch.randint(18, (BATCH,))) for _ in range(BATCHES)
    ]
    with MemorySnapshot() as gpu:
        model = PlanktonNet().to("cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        gpu.record_memory_history()
        for _epoch in range(3):
            train_one_epoch(model, optimizer, loader)
        gpu.dump(folder / "plankton.pickle")
    return {"peak_bytes": gpu.peak, "batch_bytes": IMAGE_BYTES, "steps": 3 * BATCHES}
