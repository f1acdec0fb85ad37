"""``prof.step()`` is called and there is no ``schedule=``: PyTorch then marks nothing."""

import torch
from account import Account, output
from in_torch import Network, write

STEPS = 5


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account("")
    network, inputs = Network(), torch.randn(32, 64)
    network.train_on(inputs)
    account.starts()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for number in range(STEPS):
            with account.step("train", number):
                network.train_on(inputs)
            profiler.step()
    account.stopped()
    write(profiler, file)
    account.tell()


if __name__ == "__main__":
    main()
