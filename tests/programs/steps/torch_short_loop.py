"""The loop ends before the schedule does: the last ``ProfilerStep`` has no work in it."""

import time

import torch
from account import Account, output
from in_torch import Network, write

WAIT, WARMUP, ACTIVE, LOOP = 1, 1, 8, 6


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
        for number in range(1, LOOP + 1):
            network.train_on(inputs)
            more = {"cut_off": True} if number == LOOP else {}
            account.passes(profiler.step, f"ProfilerStep#{number}", number, **more)
        ending = time.time_ns()
    account.stopped()
    account.end([ending, time.time_ns()])
    account.tell(profiled=[WAIT + WARMUP, LOOP])


if __name__ == "__main__":
    main()
