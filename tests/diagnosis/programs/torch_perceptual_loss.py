"""Super-resolution with a perceptual loss on the features of a frozen network."""

from pathlib import Path

from tests.diagnosis.pair import Pair

PAIR = Pair(
    fault="a forward hook appends the feature maps of each step to a list that is never emptied",
    about="memory",
    kind="leak",
    culprit=r"perceptual_loss|_conv_forward|conv\.py",
    line=r"perceptual_loss|_conv_forward|conv\.py|train\.py",
    savings="leak|older_copy|offload|precision",
    magnitude=4 * 4 * 32 * 48 * 48 * 4,
    tolerance=0.15,  # some blocks of the large pool are not split
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn

    from tests.diagnosis.programs._torch_snapshot import MemorySnapshot

    torch.manual_seed(1)

    class Upscaler(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.ReLU())
            self.tail = nn.Sequential(nn.Conv2d(24, 12, 3, padding=1), nn.PixelShuffle(2))

        def forward(self, small):
            return self.tail(self.body(small))

    vgg = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1),
    )
    small, large = torch.rand(4, 3, 48, 48), torch.rand(4, 3, 96, 96)
    maps = []

    def save_features(_module, _inputs, output):
        maps.append(output)

    for layer in (vgg[2], vgg[4]):
        layer.register_forward_hook(save_features)

    def perceptual_loss(made, wanted):
        if not faulty:
            maps.clear()
        vgg(made)
        mine = maps[-2:]
        with torch.no_grad():
            vgg(wanted)
        theirs = maps[-2:]
        return sum(nn.functional.l1_loss(a, b) for a, b in zip(mine, theirs, strict=True))

    with MemorySnapshot() as gpu:
        model = Upscaler().cuda()
        vgg.cuda().requires_grad_(requires_grad=False)
        optimizer = torch.optim.Adam(model.parameters(), 1e-4)
        sizes = []
        for iteration in range(13):
            if iteration == 2:
                gpu.record_memory_history()
            lowres, highres = small.cuda(), large.cuda()
            made = model(lowres)
            loss = nn.functional.mse_loss(made, highres) + 0.1 * perceptual_loss(made, highres)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            del loss, made
            sizes.append(gpu.in_use)
        gpu.dump(folder / "snapshot.pickle")
    growth = (sizes[-1] - sizes[2]) // 10
    return {"bytes_per_step": growth, "peak_bytes": gpu.peak, "steps": 11}
