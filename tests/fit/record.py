"""Record TensorFlow programs and run them under memory limits: ``record.py [NAME...] [--runs]``.

Needs a Python with TensorFlow 2.21 (CPU). A program of ``tests/fit/programs`` runs in a process of
its own, forked from one that has imported TensorFlow and done nothing with it, with the BFC
allocator under the CPU device and a limit; the profiler starts before the first allocation. A
recording has nothing but what the allocator says: the events ``MemoryAllocation`` and
``MemoryDeallocation`` with all of their stats, their lines and plane, and the metadata that these
use. It goes to ``tests/data/fit/NAME/LIMIT.xplane.pb.gz``, ``LIMIT`` in MiB, as do ``LIMIT_2...``,
recordings of the same program in which the order of allocations is another one.

``outcomes.json`` says of each program which recordings there are, and what really
happened under each limit that was tried. Whether the program fits is what its process says: it
ends, or TensorFlow raises ``ResourceExhaustedError``. ``record.py NAME`` makes the recordings that
are listed there again, and ``record.py NAME --runs`` also tries the limits that are listed there
again, as often. ``--limits MIB...`` lists further limits, ``--recorded MIB...`` further recordings.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import importlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
DATA = ROOT / "tests" / "data" / "fit"
OUTCOMES = Path(__file__).with_name("outcomes.json")
WITHOUT_LIMIT = 65536
"""MiB: more than any program here can use."""
ATTEMPTS = 5
"""Recordings that are compared with each other, of a program with one thread."""
RUNS_OF_THREADS = 5
"""Runs under each limit of a program with several threads, whose outcome may differ."""
ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TF_CPU_ALLOCATOR_USE_BFC": "1",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "PYTHONHASHSEED": "0",
}
REQUEST = re.compile(
    r"ran out of memory trying to allocate \S+ \(rounded to (\d+)\)\s*requested by op (.*)"
)
COUNT = re.compile(r"NumAllocs:\s+(\d+)")


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a program: what its process said, its reduced profile, and its log.

    TensorFlow crashes where it does not expect that a request fails, as it does for a constant of a
    graph. Then there is a ``signal`` and no profile.
    """

    fits: bool
    space: Any
    log: str
    signal: int | None = None

    def outcome(self) -> dict[str, Any]:
        """What ``outcomes.json`` says of the run.

        ``peak_bytes`` is the allocator's own maximum when the program ended or gave up;
        ``allocations`` is how many succeeded before, ``failing_bytes`` the rounded size of the
        request that did not, and ``failing_op`` what made it.
        """
        if self.fits:
            rows = list(rows_of(self.space))
            allocations = sum(row["name"] == ALLOCATION for row in rows)
            return {"fits": True, "peak_bytes": _peak(rows), "allocations": allocations}
        size, op = REQUEST.search(self.log).groups()
        allocations = int(COUNT.search(self.log)[1])
        result = {
            "fits": False,
            "peak_bytes": None if self.signal else _peak(list(rows_of(self.space)), allocations),
            "allocations": allocations,
            "failing_bytes": int(size),
            "failing_op": op.strip(),
        }
        return result | ({"signal": self.signal} if self.signal else {})


def _peak(rows: list[dict[str, Any]], allocations: int | None = None) -> int:
    """The largest ``peak_bytes_in_use`` of the first ``allocations`` allocations, or of all."""
    peaks = [row["peak_bytes_in_use"] for row in rows if row["name"] == ALLOCATION]
    return max(peaks[:allocations])


def names() -> list[str]:
    """All programs."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem[0] != "_")


def reduced(space: Any) -> Any:
    """An XSpace of the events of the allocator, with their stats, lines, plane and metadata."""
    result = type(space)()
    for plane in space.planes:
        events = {
            number
            for number, metadata in plane.event_metadata.items()
            if metadata.name in {ALLOCATION, DEALLOCATION}
        }
        if not events:
            continue
        stats: set[int] = set()
        added = result.planes.add(id=plane.id, name=plane.name)
        for line in plane.lines:
            chosen = [event for event in line.events if event.metadata_id in events]
            if not chosen:
                continue
            copy = added.lines.add()
            copy.CopyFrom(line)
            del copy.events[:]
            copy.events.extend(chosen)
            for event in chosen:
                for stat in event.stats:
                    stats.add(stat.metadata_id)
                    if stat.WhichOneof("value") == "ref_value":
                        stats.add(stat.ref_value)
        for number in sorted(events):
            added.event_metadata[number].id = number
            added.event_metadata[number].name = plane.event_metadata[number].name
        for number in sorted(stats):
            added.stat_metadata[number].CopyFrom(plane.stat_metadata[number])
    return result


def rows_of(space: Any) -> Iterator[dict[str, Any]]:
    """The events of the allocator in the order of their times, each with its stats by name."""
    result = []
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                when = line.timestamp_ns * 1000 + event.offset_ps
                result.append((when, len(result), plane, event))
    for when, _, plane, event in sorted(result, key=lambda entry: entry[:2]):
        row = {"name": plane.event_metadata[event.metadata_id].name, "time_ps": when}
        for stat in event.stats:
            kind = stat.WhichOneof("value")
            value = getattr(stat, kind)
            if kind == "ref_value":
                value = plane.stat_metadata[value].name
            row[plane.stat_metadata[stat.metadata_id].name] = value
        yield row


def order_of(space: Any) -> list[tuple[str, int]]:
    """What was requested and returned, in order: bytes, and the number of the allocation."""
    order, live, count = [], {}, 0
    for row in rows_of(space):
        if row["name"] == ALLOCATION:
            order.append(("allocate", row["requested_bytes"]))
            live[row["addr"]] = count
            count += 1
        else:
            order.append(("free", live.pop(row["addr"], -1)))
    return order


def run(name: str, limit: int) -> Run:
    """Run the program once under ``limit`` MiB, in a process of its own."""
    profiled = importlib.import_module("tests.fit.programs._profiled")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        log = folder / "stderr.log"
        process = os.fork()
        if not process:
            profiled.in_child(name, limit, folder, log)
        _, status = os.waitpid(process, 0)
        code = os.waitstatus_to_exitcode(status)
        said = log.read_text(encoding="utf-8", errors="replace")
        if code < 0 and REQUEST.search(said) and COUNT.search(said):
            return Run(fits=False, space=None, log=said, signal=-code)
        if code not in {profiled.FITS, profiled.EXHAUSTED}:
            raise RuntimeError(f"{name} under {limit} MiB: exit code {code}\n{said[-3000:]}")
        return Run(code == profiled.FITS, reduced(profiled.space_in(folder)), said)


def store(name: str, file: str, made: Run) -> dict[str, Any]:
    """Write a recording, with the log of a run that failed, and say what it holds."""
    limit = file.split("_", maxsplit=1)[0]
    path = DATA / name / f"{file}.xplane.pb.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = made.space.SerializeToString(deterministic=True)
    path.write_bytes(gzip.compress(packed, 9, mtime=0))
    if not made.fits:
        log = dump_of(made.log).encode()
        (path.parent / f"failed_{limit}.log.gz").write_bytes(gzip.compress(log, 9, mtime=0))
    events = len(list(rows_of(made.space)))
    return {"limit": int(limit), "events": events, **made.outcome()}


def dump_of(log: str) -> str:
    """The lines from the first request that failed to the error that the op raised."""
    lines = log.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if REQUEST.search(line))
    last = next(
        (number for number in range(first, len(lines)) if "OOM when allocating" in lines[number]),
        len(lines) - 1,
    )
    return "".join(lines[first : last + 1])


def record(name: str, entry: dict[str, Any]) -> None:
    """Record the program under all the limits that are listed, and without a limit."""
    for path in (DATA / name).glob("*"):
        path.unlink()
    attempts = [run(name, WITHOUT_LIMIT) for _ in range(1 if entry["threads"] > 1 else ATTEMPTS)]
    first, *others = attempts
    orders = [order_of(first.space)]
    chosen = [first]
    for other in others:
        if order_of(other.space) not in orders:
            orders.append(order_of(other.space))
            chosen.append(other)
    # Of several other orders, the one whose peak differs most says most about the range.
    peak = first.outcome()["peak_bytes"]
    chosen[1:] = sorted(
        chosen[1:], key=lambda made: abs(made.outcome()["peak_bytes"] - peak), reverse=True
    )
    limits = sorted({made["limit"] for made in entry.get("recordings", {}).values()})
    recordings = {}
    for number, made in enumerate(chosen[:2], start=1):
        file = str(WITHOUT_LIMIT) + (f"_{number}" if number > 1 else "")
        recordings[file] = store(name, file, made)
    for limit in limits:
        if limit != WITHOUT_LIMIT:
            recordings[str(limit)] = store(name, str(limit), run(name, limit))
    entry["recordings"] = recordings
    if entry["threads"] == 1:
        entry["orders"] = {"recorded": len(attempts), "different": len(orders)}


def _save(outcomes: dict[str, Any]) -> None:
    OUTCOMES.write_text(json.dumps(dict(sorted(outcomes.items())), indent=1) + "\n")


def main() -> None:
    """Record, and run, the named programs or all of them."""
    if any(os.environ.get(key) != value for key, value in ENVIRONMENT.items()):
        # Only a Python that starts with PYTHONHASHSEED has its sets in the same order each time.
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **ENVIRONMENT})  # noqa: S606
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", action="store_true", help="try the limits of outcomes.json")
    parser.add_argument("--limits", type=int, nargs="+", help="MiB: try these too, record nothing")
    parser.add_argument("--recorded", type=int, nargs="+", help="MiB: record under these too")
    parser.add_argument("--times", type=int, help="runs under each limit")
    options = parser.parse_args()
    # The processes of the runs are forked from this one, which has imported TensorFlow by then.
    importlib.import_module("tests.fit.programs._profiled")
    outcomes = json.loads(OUTCOMES.read_text()) if OUTCOMES.exists() else {}
    for name in options.names or names():
        begin = time.monotonic()
        entry = outcomes.setdefault(name, {})
        entry["threads"] = importlib.import_module(f"tests.fit.programs.{name}").THREADS
        for limit in options.recorded or ():
            entry["recordings"][str(limit)] = store(name, str(limit), run(name, limit))
        if not options.limits and not options.recorded:
            record(name, entry)
        runs = entry.setdefault("runs", {})
        usual = RUNS_OF_THREADS if entry["threads"] > 1 else 1
        for limit in options.limits or sorted(map(int, runs if options.runs else ())):
            times = options.times or len(runs.get(str(limit), ())) or usual
            runs[str(limit)] = [run(name, limit).outcome() for _ in range(times)]
        entry["runs"] = {key: runs[key] for key in sorted(runs, key=int)}
        _save(outcomes)
        sys.stdout.write(f"{name}: {time.monotonic() - begin:.0f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
