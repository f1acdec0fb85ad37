"""Super-resolution of image patches by a small network of residual convolutions."""

from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="convolutions are written as unfold times a matrix, so all patches are held in memory",
    about="memory",
    kind="huge_temporary|accumulated_in_step",
    culprit=r"aten::(im2col|col2im)|PatchConv",
    line=r"PatchConv|forward",
    savings="recompute|temporary|batch|precision",
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import time
    from statistics import median

    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import nn, optim
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(24)
    torch.set_num_threads(1)

    class PatchConv(nn.Module):
        """A 3 x 3 convolution that preserves the size."""

        def __init__(self, cin, cout):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(cout, cin, 3, 3) * 0.05)
            self.bias = nn.Parameter(torch.zeros(cout))

        def forward(self, x):
            if not faulty:
                return F.conv2d(x, self.weight, self.bias, padding=1)
            n, _, h, w = x.shape
            patches = F.unfold(x, 3, padding=1)
            out = self.weight.flatten(1) @ patches
            return out.view(n, -1, h, w) + self.bias.view(1, -1, 1, 1)

    class ResBlock(nn.Module):
        def __init__(self, n_feats):
            super().__init__()
            self.body = nn.Sequential(
                PatchConv(n_feats, n_feats), nn.ReLU(inplace=True), PatchConv(n_feats, n_feats)
            )

        def forward(self, x):
            return x + self.body(x) * 0.1

    class EDSR(nn.Module):
        def __init__(self, n_resblocks=1, n_feats=24, scale=2):
            super().__init__()
            self.head = PatchConv(3, n_feats)
            self.body = nn.Sequential(*(ResBlock(n_feats) for _ in range(n_resblocks)))
            self.tail = nn.Sequential(PatchConv(n_feats, 3 * scale**2), nn.PixelShuffle(scale))

        def forward(self, x):
            x = self.head(x)
            return self.tail(x + self.body(x))

    model = EDSR()
    optimizer = optim.Adam(model.parameters(), lr=1e-4)
    lr, hr = torch.rand(4, 3, 40, 40), torch.rand(4, 3, 80, 80)

    def update():
        optimizer.zero_grad(set_to_none=True)
        F.l1_loss(model(lr), hr).backward()
        optimizer.step()

    times = []
    for _ in range(12):
        start = time.perf_counter()
        update()
        times.append(time.perf_counter() - start)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=3),
        on_trace_ready=lambda p: write_trace(p, folder, "edsr"),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as prof:
        for _ in range(4):
            update()
            prof.step()
    return {"step_seconds": median(times[3:]), "patch_bytes": 4 * 24 * 9 * 1600 * 4, "steps": 3}
