"""No schedule and no ``prof.step()``: ``record_function("train_step")`` around every step."""

from functools import partial

import torch
from account import Account, output
from in_torch import Network, write
from torch.profiler import record_function

STEPS = 6


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('record_function("train_step")')
    network, inputs = Network(), torch.randn(32, 64)
    network.train_on(inputs)
    account.starts()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(STEPS):
            with account.step("train_step", None, partial(record_function, "train_step")):
                network.train_on(inputs)
    account.stopped()
    write(profiler, file)
    account.tell()


if __name__ == "__main__":
    main()
