"""Measures `peakline serve` beside XProf's server, on one machine in one run.

    python benchmarks/service.py --peers .venv-peers/bin/python --data bench-data

Both servers are asked by this one process, which shares the two cores with them, and take turns.
The first answer about a session is asked of a server that is up and has answered for another
session before; every repetition is a session of its own (a hard link to the same file), so that
neither server can have met it. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import grpc
from inputs import LARGE, ROOT, SMALL, profile
from servers import first_answer, free_port, get, server

import peakline
from peakline import schema

SESSIONS, HOSTS = 1000, 64
_LINKS = 32_000
"""Hard links to one copy of a file; file systems allow 65,000."""

_STARTS = 5
"""At least so many servers are started to time their first answers."""

_SERVICE = "/tensorflow.ProfileAnalysis/"


def make_sessions(root: Path, data: Path, sessions: int, hosts: int) -> None:
    """A log directory of ``sessions`` sessions with ``hosts`` hosts each, all the same profile."""
    source, links = data, _LINKS
    for number in range(sessions):
        day, second = divmod(number, 86400)
        name = f"2026_01_{day + 1:02}_{second // 3600:02}_{second // 60 % 60:02}_{second % 60:02}"
        folder = root / "plugins/profile" / name
        folder.mkdir(parents=True)
        for host in range(hosts):
            if links + 1 >= _LINKS:
                source, links = root / f"copy-{number}-{host}", 0
                shutil.copyfile(data, source)
            os.link(source, folder / f"worker-{host}.xplane.pb")
            links += 1


def peak_bytes(pid: int) -> int:
    """The most memory that the process has had resident so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def rate(ask: Callable[[], object], seconds: float, clients: int) -> float:
    """Answers per second that ``clients`` threads get when each asks again at once."""
    counts, stop = [0] * clients, threading.Event()
    errors: list[Exception] = []

    def client(number: int) -> None:
        try:
            while not stop.is_set():
                ask()
                counts[number] += 1
        except Exception as error:  # noqa: BLE001  (told by the thread that waits)
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(counts) / (time.perf_counter() - begin)


def timed(ask: Callable[[], object], times: int) -> list[float]:
    """Seconds of each of ``times`` calls."""
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        ask()
        took.append(time.perf_counter() - begin)
    return took


class Measurements:
    """What was measured, by question and program."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []

    def add(self, question: str, program: str, unit: str, values: list[float]) -> None:
        """Keep the median, least and most of ``values``."""
        self.rows.append(
            {
                "question": question,
                "program": program,
                "unit": unit,
                "runs": len(values),
                "median": statistics.median(values),
                "least": min(values),
                "most": max(values),
            }
        )


def measure_start(data: Path, scratch: Path, repeats: int, chosen: Measurements) -> None:
    """New servers of one small session, each asked for a tool as soon as it listens."""
    folder = scratch / "small/plugins/profile/first"
    folder.mkdir(parents=True)
    os.link(data, folder / "vm.xplane.pb")
    started, listened = list[float](), list[float]()
    # The first one, which brings the modules into the page cache, does not count.
    for _ in range(repeats + 1):
        port = free_port()
        url = f"http://127.0.0.1:{port}/api/sessions/first/tools/memory_profile"
        command = _serve(port, 0, scratch / "small")
        from_start, from_listening = first_answer(command, port, url)
        started.append(from_start)
        listened.append(from_listening)
    question = "first memory_profile, 1 MB, of a new server, from when it"
    chosen.add(f"{question} listens", "Peakline", "s", listened[1:])
    chosen.add(f"{question} was started", "Peakline", "s", started[1:])


def _serve(http_port: int, grpc_port: int, *logdirs: Path) -> list[str | Path]:
    program = Path(sys.executable).with_name("peakline")
    ports = ["--http-port", str(http_port), "--grpc-port", str(grpc_port)]
    return [program, "serve", *logdirs, "--access-log", "off", *ports]


def measure_listing(many: Path, chosen: Measurements) -> None:
    """Sessions and hosts of the large log directory, from Python."""

    def listing() -> None:
        repository = peakline.Repository(many)
        hosts = sum(len(session.hosts) for session in repository.sessions())
        if hosts != SESSIONS * HOSTS:
            raise SystemExit(f"{hosts} hosts were listed, not {SESSIONS * HOSTS}")

    chosen.add("list 1,000 sessions of 64 hosts", "Peakline", "s", timed(listing, 5))


def measure_grpc(port: int, many: Path, one: Path, chosen: Measurements) -> None:
    """EnumSessions over many sessions; memory_profile of a small one, as often as possible."""
    info = schema.EnumProfileSessionsAndToolsRequest(repository_root=str(many))
    data = schema.ProfileSessionDataRequest(
        repository_root=str(one), session_id="first", tool_name="memory_profile"
    )
    with grpc.insecure_channel(
        f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)]
    ) as channel:

        def method(name: str, answer: type) -> Callable[..., object]:
            return channel.unary_unary(
                _SERVICE + name,
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=answer.FromString,
            )

        enum = method("EnumSessions", schema.EnumProfileSessionsAndToolsResponse)
        tool = method("GetSessionToolData", schema.ProfileSessionDataResponse)

        def enumerate_all() -> None:
            result = enum(info, timeout=600)
            if len(result.sessions) != SESSIONS or not result.sessions[0].available_tools:
                raise SystemExit(f"EnumSessions answered {len(result.sessions)} sessions")

        first = timed(enumerate_all, 1)
        chosen.add("EnumSessions, 1,000 sessions of 64 hosts, first", "Peakline", "s", first)
        warm = timed(enumerate_all, 30)
        chosen.add("EnumSessions, 1,000 sessions of 64 hosts, warm", "Peakline", "s", warm)

        tool(data, timeout=600)
        rates = [rate(lambda: tool(data, timeout=60), 3, 8) for _ in range(3)]
        chosen.add("GetSessionToolData(memory_profile), 1 MB, warm", "Peakline", "1/s", rates)


def measure_http(
    ours: Callable[[str], str], theirs: Callable[[str], str], repeats: int, chosen: Measurements
) -> None:
    """Both servers over HTTP: first answers of large sessions, then a small one warm."""
    question = "memory_profile of a new session of 386 MB, over HTTP"
    times: dict[str, list[float]] = {"Peakline": [], "XProf": []}
    for url in (ours, theirs):
        get(url("first"))
    for number in range(repeats):
        result = {}
        for program, url in (("Peakline", ours), ("XProf", theirs)):
            begin = time.perf_counter()
            result[program] = get(url(f"large_{number}"))
            times[program].append(time.perf_counter() - begin)
        mine, other = map(essence, result.values())
        if mine != other:
            raise SystemExit(f"the answers differ:\n{mine}\n{other}")
    for program, values in times.items():
        chosen.add(question, program, "s", values)
    for program, url in (("Peakline", ours), ("XProf", theirs)):
        rates = [rate(lambda url=url: get(url("first")), 3, 8) for _ in range(3)]
        chosen.add("memory_profile of a session of 1 MB, warm, over HTTP", program, "1/s", rates)


def essence(answer: bytes) -> object:
    """What both answers must have in common, per allocator."""
    # XProf's server compresses whatever the client accepts.
    text = gzip.decompress(answer) if answer.startswith(b"\x1f\x8b") else answer
    memories = json.loads(text)["memoryProfilePerAllocator"]
    return {
        name: (memory["profileSummary"], len(memory["activeAllocations"]))
        for name, memory in memories.items()
    }


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Measure the service against XProf's server.")
    parser.add_argument("--peers", type=Path, required=True, help="Python that has XProf")
    parser.add_argument("--data", type=Path, default=ROOT / "bench-data", help="folder for data")
    parser.add_argument("--repeats", type=int, default=3, help="first answers of each server")
    options = parser.parse_args()

    chosen = Measurements()
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        scratch = Path(folder)
        many, one = scratch / "many", scratch / "one"
        small, large = profile(options.data, SMALL), profile(options.data, LARGE)
        make_sessions(many, small, SESSIONS, HOSTS)
        sessions = {f"large_{number}": large for number in range(options.repeats)}
        for session, data in {"first": small, **sessions}.items():
            place = one / "plugins/profile" / session
            place.mkdir(parents=True)
            os.link(data, place / "vm.xplane.pb")
        measure_start(small, scratch, max(options.repeats, _STARTS), chosen)
        measure_listing(many, chosen)

        grpc_port, http_port, peer_port, peer_grpc = (free_port() for _ in range(4))
        ours = f"http://127.0.0.1:{http_port}"
        theirs = f"http://127.0.0.1:{peer_port}/data/plugin/profile"
        with server(_serve(http_port, grpc_port, many, one), f"{ours}/healthz") as pid:
            measure_grpc(grpc_port, many, one, chosen)
            peer = [
                options.peers.with_name("xprof"), "server", "--logdir", one,
                "--port", str(peer_port), "--grpc_port", str(peer_grpc),
            ]  # fmt: skip
            with server(peer, f"{theirs}/runs") as peer_pid:
                measure_http(
                    lambda session: (
                        f"{ours}/api/sessions/{session}/tools/memory_profile?root={one}"
                    ),
                    lambda session: f"{theirs}/data?run={session}&tag=memory_profile&host=vm",
                    options.repeats,
                    chosen,
                )
                for program, number in (("Peakline", pid), ("XProf", peer_pid)):
                    used = [float(peak_bytes(number))]
                    chosen.add("peak memory of the server after all this", program, "bytes", used)
    print(json.dumps(chosen.rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
