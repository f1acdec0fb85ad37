"""Batches come from a ``DataLoader`` with two workers, which are processes of their own."""

import torch
from account import Account, output
from in_torch import Network, write

WAIT, WARMUP, ACTIVE = 1, 1, 5


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account("prof.step() with schedule=")
    network = Network()
    data = torch.utils.data.TensorDataset(torch.randn(512, 64))
    loader = torch.utils.data.DataLoader(data, batch_size=32, num_workers=2)
    schedule = torch.profiler.schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1)
    account.starts()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=schedule,
        on_trace_ready=lambda profiler: write(profiler, file),
    ) as profiler:
        for number, (inputs,) in enumerate(loader, 1):
            network.train_on(inputs)
            account.passes(profiler.step, f"ProfilerStep#{number}", number)
            if number == WAIT + WARMUP + ACTIVE:
                break
    account.stopped()
    account.tell(profiled=[WAIT + WARMUP, WAIT + WARMUP + ACTIVE - 1])


if __name__ == "__main__":
    main()
