"""A small U-Net for cell images, with a log of how gradients flow through its layers."""

import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="mean, range and norm of each gradient are read with float() in every step",
    about="time",
    kind="host_sync|tiny_ops|python_work|host_bound|launch_bound",
    culprit=r"log_gradient_flow|aten::(item|_local_scalar_dense|linalg_vector_norm|abs)\b",
    line=r"log_gradient_flow",
    round=2,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(26)
    torch.set_num_threads(1)
    history = []

    def conv_block(c_in, c_out):
        return nn.Sequential(
            nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(inplace=True),
        )

    class UNet(nn.Module):
        def __init__(self, base=8):
            super().__init__()
            self.down1, self.bottom = conv_block(1, base), conv_block(base, 2 * base)
            self.up1 = nn.ConvTranspose2d(2 * base, base, 2, stride=2)
            self.conv1 = conv_block(2 * base, base)
            self.out = nn.Conv2d(base, 1, 1)

        def forward(self, x):
            a = self.down1(x)
            x = self.up1(self.bottom(nn.functional.max_pool2d(a, 2)))
            return self.out(self.conv1(torch.cat([x, a], 1)))

    def log_gradient_flow(model):
        row = {}
        for name, p in model.named_parameters():
            row[f"{name}/mean"] = float(p.grad.abs().mean())
            row[f"{name}/min"] = float(p.grad.abs().min())
            row[f"{name}/max"] = float(p.grad.abs().max())
            row[f"{name}/norm"] = float(p.grad.norm())
        history.append(row)

    def train_net(model, loader, optimizer, log_every, prof=None):
        criterion = nn.BCEWithLogitsLoss()
        took = []
        for global_step, (imgs, true_masks) in enumerate(loader, 1):
            start = time.perf_counter()
            loss = criterion(model(imgs), true_masks)
            optimizer.zero_grad()
            loss.backward()
            if global_step % log_every == 0:
                log_gradient_flow(model)
            optimizer.step()
            took.append(time.perf_counter() - start)
            if prof:
                prof.step()
        return took

    net = UNet()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-5, momentum=0.9, foreach=True)
    cells = [(torch.randn(1, 1, 28, 28), torch.rand(1, 1, 28, 28).round()) for _ in range(24)]
    log_every = 1 if faulty else 100
    took = train_net(net, cells, optimizer, log_every)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "unet"),
        with_stack=True,
    ) as prof:
        train_net(net, cells[:6], optimizer, log_every, prof)
    return {"step_seconds": median(took[4:]), "values": 4 * len(list(net.parameters())), "steps": 3}
