"""Training with a schedule and Python stacks, beside two threads that evaluate all the time."""

import threading

import torch
from account import Account, output
from in_torch import Network, write

WAIT, WARMUP, ACTIVE = 1, 1, 3


def main() -> None:
    """Record one run."""
    file = output(__doc__)
    account = Account("prof.step() with schedule=")
    network, inputs = Network(), torch.randn(32, 64)
    others = [Network(), Network()]
    for each in (network, *others):
        each.train_on(inputs)
    turn = threading.Barrier(3)

    def evaluate(other: Network) -> None:
        for _ in range(WAIT + WARMUP + ACTIVE):
            turn.wait()
            other.evaluate_on(inputs)
            turn.wait()

    threads = [threading.Thread(target=evaluate, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    schedule = torch.profiler.schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1)
    account.starts()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=schedule,
        with_stack=True,
        on_trace_ready=lambda profiler: write(profiler, file),
        # Without it PyTorch profiles only threads that the profiling one has begun work on.
        experimental_config=torch._C._profiler._ExperimentalConfig(profile_all_threads=True),
    ) as profiler:
        for number in range(1, WAIT + WARMUP + ACTIVE + 1):
            turn.wait()
            network.train_on(inputs)
            turn.wait()
            account.passes(profiler.step, f"ProfilerStep#{number}", number)
    account.stopped()
    for thread in threads:
        thread.join()
    account.tell(profiled=[WAIT + WARMUP, WAIT + WARMUP + ACTIVE - 1])


if __name__ == "__main__":
    main()
