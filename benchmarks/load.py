"""Measures `peakline serve` beside XProf's server under many clients at once.

    python benchmarks/load.py --peers .venv-peers/bin/python --data bench-data --minutes 10

Every client has one request in flight and sends the next when it has its answer: XProf's own URLs
(four tools, four sessions of 20 MB), so that both servers get the same ones. A further run sends
half of them to Peakline over gRPC. The servers have their default options and take turns; this
process shares the cores with them. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import random
import re
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import grpc
from inputs import ROOT, profile
from servers import free_port, server

from peakline import schema

_SESSIONS = tuple(f"session_{number}" for number in range(4))
_TOOLS = ("overview_page", "memory_profile", "framework_op_stats", "trace_viewer@")
_HOST = "vm"
_REFUSED = {"429", "503", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
_TIMEOUT_S = 300
"""A client gives up then, as Peakline does by default."""

_Ask = Callable[[str, str], str]
_Client = AbstractContextManager[_Ask]
"""Asks a session for a tool; returns the code of the answer."""


@dataclass
class Seen:
    """What clients saw of one server: how often each code, how long answers took; and what the
    process had of memory and threads, each second of each turn.
    """

    codes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    memory: list[list[int]] = field(default_factory=list)
    threads: list[list[int]] = field(default_factory=list)
    lasted: float = 0.0

    def row(self, program: str, clients: int) -> dict[str, object]:
        """The figures of one program."""
        took = sorted(self.seconds)
        answers = len(took)
        right = sum(count for code, count in self.codes.items() if code in {"200", "OK"})
        refused = sum(count for code, count in self.codes.items() if code in _REFUSED)
        return {
            "program": program,
            "clients": clients,
            "seconds": round(self.lasted, 1),
            "answers": answers,
            "answers_per_s": round(right / self.lasted, 2),
            "refused": refused,
            "failed": answers - right - refused,
            "codes": dict(self.codes),
            "median_s": statistics.median(took),
            "p99_s": took[int(0.99 * (answers - 1))],
            "worst_s": took[-1],
            "memory_bytes": _halves(self.memory),
            "threads": _halves(self.threads),
        }


def _halves(turns: list[list[int]]) -> list[int]:
    """The most in the first half of any turn, and in the second."""
    return [
        max(max(turn[: len(turn) // 2]) for turn in turns),
        max(max(turn[len(turn) // 2 :]) for turn in turns),
    ]


@contextmanager
def over_http(port: int) -> Iterator[_Ask]:
    """A client of XProf's endpoints, with a connection of its own."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)) as connection:

        def ask(session: str, tool: str) -> str:
            path = f"/data/plugin/profile/data?run={session}&tag={quote(tool)}&host={_HOST}"
            try:
                connection.request("GET", path)
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                return type(error).__name__
            return str(response.status)

        yield ask


@contextmanager
def over_grpc(port: int) -> Iterator[_Ask]:
    """A client of Peakline's gRPC service, with a channel of its own."""
    options = (("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1))
    with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        call = channel.unary_unary("/tensorflow.ProfileAnalysis/GetSessionToolData")

        def ask(session: str, tool: str) -> str:
            request = schema.ProfileSessionDataRequest(
                session_id=session, host_name=_HOST, tool_name=tool
            )
            try:
                call(request.SerializeToString(), timeout=_TIMEOUT_S)
            except grpc.RpcError as error:
                return str(error.code().name)
            return "OK"

        yield ask


def load(seen: Seen, pid: int, clients: Sequence[Callable[[], _Client]], seconds: float) -> None:
    """Let ``clients`` ask for ``seconds``, and add what they and the system say to ``seen``."""
    begun, over, lock = threading.Barrier(len(clients) + 1), threading.Event(), threading.Lock()

    def client(number: int, make: Callable[[], _Client]) -> None:
        questions = list(itertools.product(_SESSIONS, _TOOLS))
        random.Random(number).shuffle(questions)  # noqa: S311 (an order)
        codes, took = Counter[str](), list[float]()
        with make() as ask:
            begun.wait()
            for session, tool in itertools.cycle(questions):
                if over.is_set():
                    break
                begin = time.perf_counter()
                codes[ask(session, tool)] += 1
                took.append(time.perf_counter() - begin)
        with lock:
            seen.codes += codes
            seen.seconds += took

    threads = [threading.Thread(target=client, args=each) for each in enumerate(clients)]
    for thread in threads:
        thread.start()
    begun.wait()
    begin = time.perf_counter()
    memory, running = list[int](), list[int]()
    while time.perf_counter() < begin + seconds:
        time.sleep(1)
        status = Path(f"/proc/{pid}/status").read_text()
        numbers = {name: int(number) for name, number in re.findall(r"(?m)^(\w+):\s+(\d+)", status)}
        memory.append(numbers["VmRSS"] * 1024)
        running.append(numbers["Threads"])
    over.set()
    for thread in threads:
        thread.join()
    seen.memory.append(memory)
    seen.threads.append(running)
    seen.lasted += time.perf_counter() - begin


def measure(
    options: argparse.Namespace, scratch: Path, seen: dict[str, Seen], seconds: float
) -> None:
    """One turn of every program, each a new server with a log directory of its own."""
    peakline = Path(sys.executable).with_name("peakline")
    programs: dict[str, Callable[[Path, int, int], list[str | Path]]] = {}
    for program in ("Peakline", "Peakline, half over gRPC"):
        programs[program] = lambda logdir, port, beside: [
            peakline, "serve", logdir, "--access-log", "off",
            "--http-port", str(port), "--grpc-port", str(beside),
        ]  # fmt: skip
    if options.peers is not None:
        programs["XProf"] = lambda logdir, port, beside: [
            options.peers.with_name("xprof"), "server", "--logdir", logdir,
            "--port", str(port), "--grpc_port", str(beside),
        ]  # fmt: skip
    for program, command in programs.items():
        port, beside = free_port(), free_port()
        logdir = scratch / f"{program}-{port}"
        make_sessions(logdir, profile(options.data, "20 MB"))
        faces: list[Callable[[], _Client]] = [lambda port=port: over_http(port)]
        if program.endswith("gRPC"):
            faces.append(lambda beside=beside: over_grpc(beside))
        clients = list(itertools.islice(itertools.cycle(faces), options.clients))
        ready = f"http://127.0.0.1:{port}/data/plugin/profile/runs"
        with server(command(logdir, port, beside), ready) as pid:
            print(f"{program}: {options.clients} clients, {seconds:.0f} s", file=sys.stderr)
            load(seen.setdefault(program, Seen()), pid, clients, seconds)


def make_sessions(logdir: Path, data: Path) -> None:
    """A log directory of `_SESSIONS`, all the same profile."""
    for session in _SESSIONS:
        folder = logdir / "plugins/profile" / session
        folder.mkdir(parents=True)
        os.link(data, folder / f"{_HOST}.xplane.pb")


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peers", type=Path, help="Python that has XProf; without it, only ours")
    parser.add_argument("--data", type=Path, default=ROOT / "bench-data", help="folder for data")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=10, help="of each program, all turns")
    parser.add_argument("--repeats", type=int, default=2, help="turns of each program")
    options = parser.parse_args()
    seen: dict[str, Seen] = {}
    profile(options.data, "20 MB")
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory(dir=options.data) as folder:
            measure(options, Path(folder), seen, 60 * options.minutes / options.repeats)
    rows = [result.row(program, options.clients) for program, result in seen.items()]
    print(json.dumps({"rows": rows, "sessions": len(_SESSIONS), "tools": list(_TOOLS)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
