"""A text encoder trained on batches of one length each, in the order of a curriculum."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="batches come shortest first, so no cached block is ever large enough for the next",
    about="memory",
    kind="fragmentation",
    culprit=r"FeedForward|linear\.py|\bforward\b",
    line=r"forward|linear\.py",
    is_held_out=False,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(6)
    torch.set_num_threads(2)

    class FeedForward(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.expand, self.reduce = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return x + self.reduce(torch.tanh(self.expand(x)))

    class TextEncoder(nn.Module):
        def __init__(self, words=400, width=96):
            super().__init__()
            self.embed = nn.Embedding(words, width)
            self.layers = nn.ModuleList(FeedForward(width) for _ in range(2))
            self.score = nn.Linear(width, 1)

        def forward(self, ids):
            x = self.embed(ids)
            for layer in self.layers:
                x = layer(x)
            return self.score(x.mean(dim=1)).squeeze(1)

    lengths = [128 + 24 * i for i in range(10)]
    if not faulty:
        lengths.reverse()
    batches = [torch.randint(400, (64, length)) for length in lengths]
    target = torch.rand(64)
    with MemorySnapshot(stacks="all") as gpu:
        gpu.record_memory_history()
        model = TextEncoder().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        for ids in batches:
            loss = nn.functional.mse_loss(model(ids.cuda()), target.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            del loss
        gpu.dump(folder / "snapshot.pickle")
    return {
        "peak_bytes": gpu.peak,
        "peak_reserved_bytes": gpu.peak_reserved,
        "unused_share": 1 - gpu.peak / gpu.peak_reserved,
        "steps": len(batches),
    }
