"""A schedule and ``prof.step()``: one step of waiting, one of warming up, four are profiled."""

import torch
from account import Account, output
from in_torch import Network, write

WAIT, WARMUP, ACTIVE = 1, 1, 4


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account("prof.step() with schedule=")
    network, inputs = Network(), torch.randn(32, 64)
    schedule = torch.profiler.schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1)
    account.starts()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=schedule,
        on_trace_ready=lambda profiler: write(profiler, file),
    ) as profiler:
        for number in range(1, WAIT + WARMUP + ACTIVE + 1):
            network.train_on(inputs)
            account.passes(profiler.step, f"ProfilerStep#{number}", number)
    account.stopped()
    account.tell(profiled=[WAIT + WARMUP, WAIT + WARMUP + ACTIVE - 1])


if __name__ == "__main__":
    main()
