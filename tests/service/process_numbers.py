"""What a running server costs and counts: memory, threads and descriptors; metrics; files."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx
from tests.service.server_process import ServerProcess
from tests.waiting import HANG_S

from peakline.service.run import Server


@dataclass(frozen=True)
class Costs:
    """Of one process; memory in bytes, ``peak`` is the most it ever had."""

    memory: int
    peak: int
    threads: int
    descriptors: int


def costs_of(server: ServerProcess) -> Costs:
    return costs_of_process(server.process.pid)


def costs_of_process(pid: int) -> Costs:
    place = Path("/proc", str(pid))
    status = place.joinpath("status").read_text(encoding="ascii")
    numbers = {name: int(value) for name, value in re.findall(r"(?m)^(\w+):\s+(\d+)", status)}
    descriptors = len(list(place.joinpath("fd").iterdir()))
    return Costs(numbers["VmRSS"] << 10, numbers["VmHWM"] << 10, numbers["Threads"], descriptors)


def children_of(server: ServerProcess) -> dict[int, int]:
    """The processes that the server has started, and the processor's ticks that each has taken."""
    result = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = place.joinpath("stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            continue  # gone
        if int(fields[1]) == server.process.pid:
            result[int(place.name)] = int(fields[11]) + int(fields[12])
    return result


def metrics_of(server: ServerProcess | Server) -> dict[str, float]:
    """The server's metrics: each sample's name with its labels, and its value."""
    text = httpx.get(f"http://127.0.0.1:{server.http_port}/metrics", timeout=HANG_S).text
    samples = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in samples}


def metric(server: ServerProcess | Server, name: str) -> float:
    """One sample; 0 where nothing was counted yet."""
    return metrics_of(server).get(name, 0.0)


def files_under(logdir: Path) -> list[str]:
    """Everything below a directory that is no directory itself, names with dots too."""
    return sorted(str(p.relative_to(logdir)) for p in logdir.rglob("*") if not p.is_dir())


def tell(*numbers: object) -> None:
    """Measured numbers, for whoever runs pytest with -rP."""
    sys.stdout.write("".join(f"{number}\n" for number in numbers))
