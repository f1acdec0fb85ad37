"""``record_function`` of two names: training, and after every third step an evaluation."""

from functools import partial

import torch
from account import Account, output
from in_torch import Network, write
from torch.profiler import record_function

STEPS, EVERY = 9, 3


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account('record_function("train" or "eval")')
    network, inputs = Network(), torch.randn(32, 64)
    network.train_on(inputs)
    account.starts()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for number in range(STEPS):
            with account.step("train", None, partial(record_function, "train")):
                network.train_on(inputs)
            if number % EVERY == EVERY - 1:
                with account.step("eval", None, partial(record_function, "eval")):
                    network.evaluate_on(inputs)
    account.stopped()
    write(profiler, file)
    account.tell()


if __name__ == "__main__":
    main()
