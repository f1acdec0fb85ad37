"""Pick the arrivals of P and S waves in seismograms, in a module with hooks of a trainer."""

import logging
import time
from pathlib import Path
from statistics import median

from tests.diagnosis.pair import Pair
from tests.diagnosis.programs._torch_trace import write_trace

PAIR = Pair(
    fault="an f-string for a debug message, which nobody sees, formats tensors in every step",
    about="time",
    kind="python_work|tiny_ops|host_sync|host_bound|launch_bound|expensive_op",
    culprit=r"_tensor_str|__repr__|__format__|log_batch",
    line=r"_tensor_str|__repr__|__format__|log_batch",
    faulty_allowed=(
        r"tiny_ops.*aten::(item|_local_scalar_dense|select|as_strided|unbind)",
        r"host_sync.*item",
    ),
    round=4,
)

logger = logging.getLogger("phasenet")


def record(folder: Path, *, faulty: bool) -> dict:
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.manual_seed(41)
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO)
    spent = []

    class PhaseNet(nn.Module):
        """Down and up again, with one skip, over three components of a station."""

        def __init__(self, width=16):
            super().__init__()
            self.down1 = nn.Conv1d(3, width, 7, padding=3)
            self.down2 = nn.Conv1d(width, 2 * width, 7, stride=4, padding=3)
            self.middle = nn.Conv1d(2 * width, 2 * width, 7, padding=3)
            self.up = nn.ConvTranspose1d(2 * width, width, 4, stride=4)
            self.picks = nn.Conv1d(2 * width, 3, 1)

        def forward(self, waves):
            skip = torch.relu(self.down1(waves))
            x = torch.relu(self.middle(torch.relu(self.down2(skip))))
            return self.picks(torch.cat([skip, torch.relu(self.up(x))], dim=1))

    class PhasePicker(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = PhaseNet()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-3)

        def log_batch(self, index, waves, phases, logits):
            if faulty:
                message = f"batch {index}: waves={waves}, phases={phases}, logits={logits}"
                logger.debug(message)
            else:
                logger.debug("batch %d: %s -> %s", index, waves.shape, logits.shape)

        def training_step(self, batch, index):
            waves, phases = batch
            logits = self.net(waves)
            began = time.perf_counter()
            self.log_batch(index, waves, phases, logits)
            spent.append(time.perf_counter() - began)
            return nn.functional.cross_entropy(logits, phases)

    def fit(module, loader, optimizer, prof=None):
        times = []
        for index, batch in enumerate(loader):
            began = time.perf_counter()
            loss = module.training_step(batch, index)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            times.append(time.perf_counter() - began)
            if prof:
                prof.step()
        return median(times)

    module = PhasePicker()
    optimizer = module.configure_optimizers()
    stations = [(torch.randn(12, 3, 600), torch.randint(3, (12, 600))) for _ in range(4)]
    seconds = fit(module, stations * 5, optimizer)
    in_logs = median(spent)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda prof: write_trace(prof, folder, "phases"),
        with_stack=True,
    ) as prof:
        fit(module, stations, optimizer, prof)
    return {"step_seconds": seconds, "log_seconds": in_logs, "steps": 2}
