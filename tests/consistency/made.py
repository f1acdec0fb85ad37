"""Profiles made by hand, of what no machine that recorded samples has: GPUs, and odd traces."""

from collections.abc import Callable

from tests.timing.gpu_jobs import Job, Work, write
from tests.web.samples import gpu_profile, kernel_profile

from reference.odd_traces import odd_trace


def slow_step_on_gpus() -> bytes:
    """Two GPUs, and one step that takes three times as long as the others."""

    def work(step: int, _device: int) -> list[Work]:
        return [Work("gemm", 100, 9_000 if step == 5 else 2_900)]

    return write(Job(work, devices=2))


def _odd(seed: int) -> Callable[[], bytes]:
    return lambda: bytes(odd_trace(seed).text, "utf-8")


MADE: dict[str, Callable[[], bytes]] = {
    "gpus.xplane.pb": gpu_profile,
    "kernels.xplane.pb": kernel_profile,
    "slow_step_on_gpus.xplane.pb": slow_step_on_gpus,
    **{f"odd_{seed}.json": _odd(seed) for seed in range(40)},
}
"""What makes the content of each, by the file's name."""
