"""XSpaces of training jobs on GPUs, made by hand: what no CPU can record.

A job is a loop of marked steps on the host, and on every GPU kernels, collectives and copies that
the host launched. Times are microseconds from the step's begin.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.reference.xspace_builder import SpaceBuilder

US = 10**6
COMPUTE, COPIES, COLLECTIVES = "Stream #13(Compute)", "Stream #14(Memcpy)", "Stream #15(Compute)"
LAUNCHES = {"Memcpy": "cuMemcpyAsync", "nccl": "cuLaunchKernelExC"}


@dataclass(frozen=True)
class Work:
    """Something that runs on a device: when, how long, on which stream, and when it is launched."""

    name: str
    at: float
    takes: float
    stream: str = COMPUTE
    launched: float = 20.0


@dataclass(frozen=True)
class Job:
    """A job: what every device does in a step, and what the host does besides launching.

    The marker of a step begins at its begin and lasts ``marker`` of its ``period``.
    """

    work: Callable[[int, int], Sequence[Work]]
    host: Callable[[int], Sequence[tuple[str, float, float]]] = field(default=lambda _step: ())
    steps: int = 12
    devices: int = 1
    period: float = 10_000.0
    marker: float = 1_000.0


def healthy(step: int, device: int) -> list[Work]:
    """Four kernels back to back that fill a period of 10 ms, launched at its begin."""
    del step, device
    return [Work(f"gemm_{n}", 100 + 2450 * n, 2440, launched=50 + 5 * n) for n in range(4)]


def write(job: Job) -> bytes:
    """The XSpace of ``job``."""
    space = SpaceBuilder()
    planes = [space.plane(f"/device:GPU:{n}") for n in range(job.devices)]
    streams = [
        {name: plane.line(name) for name in (COMPUTE, COPIES, COLLECTIVES)} for plane in planes
    ]
    python = space.host().line("python")
    correlation = 0
    for step in range(job.steps):
        begin = 10_000 + step * job.period
        stats = {"step_num": step, "_r": 1}
        events = [(0.0, job.marker, "train", stats)]
        events += [(at, takes, name, {}) for name, at, takes in job.host(step)]
        for device in range(job.devices):
            for work in job.work(step, device):
                correlation += 1
                stats = {"correlation_id": correlation}
                offset, length = round((begin + work.at) * US), round(work.takes * US)
                streams[device][work.stream].event(work.name, offset, length, stats)
                launch = next(
                    (name for kind, name in LAUNCHES.items() if work.name.startswith(kind)),
                    "cuLaunchKernel",
                )
                events.append((work.launched, 4.0, launch, {"correlation_id": correlation}))
        for at, takes, name, stats in sorted(events, key=lambda event: (event[0], -event[1])):
            python.event(name, round((begin + at) * US), round(takes * US), stats)
    content: bytes = space.space.SerializeToString()
    return content
