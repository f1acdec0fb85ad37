"""Matting of portraits by dilated convolutions, which returns its feature maps for plots."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="outputs of a step, with all feature maps, live until those of the next have been made",
    about="memory",
    kind="held_after_use|redundant_copy|accumulated_in_step",
    culprit=r"\brefine\b",
    line=r"\brefine\b",
    savings="older_copy|recompute|batch",
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.nn import functional

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(34)
    torch.set_num_threads(1)

    class MattingNet(nn.Module):
        def __init__(self, width=16, depth=6):
            super().__init__()
            self.stem = nn.Conv2d(3, width, 3, padding=1)
            self.layers = nn.ModuleList(
                nn.Conv2d(width, width, 3, padding=2**i, dilation=2**i) for i in range(depth)
            )
            self.alpha = nn.Conv2d(width, 1, 1)

        def refine(self, x):
            maps = []
            for layer in self.layers:
                x = torch.tanh(layer(x))
                maps.append(x)
            return maps

        def forward(self, images):
            maps = self.refine(self.stem(images))
            return {"alpha": self.alpha(maps[-1]), "feature_maps": maps}

    def portraits(count):
        for _ in range(count):
            yield torch.rand(4, 3, 96, 96), torch.rand(4, 1, 96, 96)

    with MemorySnapshot(stacks="all") as gpu:
        gpu.record_memory_history()
        net = MattingNet().to("cuda")
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        for photos, mattes in portraits(10):
            outputs = net(photos.to("cuda"))
            loss = functional.l1_loss(outputs["alpha"], mattes.to("cuda"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            held = sum(m.numel() * 4 for m in outputs["feature_maps"])
            if not faulty:
                del outputs
        gpu.dump(folder / "snapshot.pickle")
    return {"peak_bytes": gpu.peak, "outputs_bytes": held, "steps": 10}
