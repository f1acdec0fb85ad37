"""Chrome traces of any size, made by repeating a real one in time, and how fast they are read.

    python benchmarks/chrome.py write --target 500MB bench-data/trace.json
    python benchmarks/chrome.py measure bench-data/trace.json

Every repetition has all the events once more, later by one period, with arrow ids of its own.
`measure` prints one JSON object: Peakline's whole answer (all events as columns) and
``json.loads``, each in a process of its own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from pathlib import Path

from measure import run_once

SOURCE = Path(__file__).parent.parent / "tests/data/chrome_trace/noleak.pt.trace.json.gz"

_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_TIME = re.compile(rb'("ts":\s*)(\d+)(\.\d+)?')
_ARROW = re.compile(rb'("ph":\s*"[stf]",\s*"id":\s*)(\d+)')
_ARROWS = 10**7
"""Added to the ids of arrows by each repetition."""

_PEAKLINE = """
import sys, time
import peakline
begin = time.perf_counter()
with peakline.open(sys.argv[1]) as profile:
    events = profile.columns("events").rows
print(events, time.perf_counter() - begin)
"""

_JSON = """
import json, sys, time
begin = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    trace = json.loads(file.read())
events = len(trace if isinstance(trace, list) else trace["traceEvents"])
print(events, time.perf_counter() - begin)
"""


def write_scaled(target: Path, size: int, source: Path = SOURCE) -> int:
    """Write a trace of about ``size`` bytes to ``target``; return the repetitions."""
    raw = source.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    begin = raw.index(b"[", max(0, raw.find(b'"traceEvents"'))) + 1
    end = raw.rindex(b"]")
    head, body, tail = raw[:begin], raw[begin:end].strip().rstrip(b","), raw[end:]
    times = [int(match[2]) for match in _TIME.finditer(body)]
    period = max(times) - min(times) + 1_000_000
    # The text between the numbers to change, and those numbers.
    places = sorted(
        [(m.start(2), m.end(2), period) for m in _TIME.finditer(body)]
        + [(m.start(2), m.end(2), _ARROWS) for m in _ARROW.finditer(body)]
    )
    between, at = [], 0
    for start, stop, _ in places:
        between.append(body[at:start])
        at = stop
    numbers = [(int(body[start:stop]), stride) for start, stop, stride in places]
    repetitions = max(1, round(size / len(body)))
    with target.open("wb") as file:
        file.write(head)
        for repetition in range(repetitions):
            file.write(b",\n" if repetition else b"\n")
            for text, (number, stride) in zip(between, numbers, strict=True):
                file.write(text)
                file.write(b"%d" % (number + repetition * stride))
            file.write(body[at:])
        file.write(tail)
    return repetitions


def measure(path: Path, *, with_json: bool = True) -> dict[str, dict[str, float]]:
    """Seconds, MB/s, events/s and peak bytes of Peakline and of ``json.loads``.

    Peakline reads twice; the first time it imports what it needs.
    """
    size = path.stat().st_size
    result: dict[str, dict[str, float]] = {}
    programs = {"peakline": _PEAKLINE, **({"json.loads": _JSON} if with_json else {})}
    for name, program in programs.items():
        for _ in range(2 if name == "peakline" else 1):
            run = run_once([sys.executable, "-c", program, path])
        if run.exit_code:
            sys.exit(run.stderr)
        events, seconds = (float(word) for word in run.stdout.split())
        result[name] = {
            "events": events,
            "seconds": seconds,
            "MB/s": size / 1e6 / seconds,
            "events/s": events / seconds,
            "peak bytes": run.peak_bytes,
            "peak bytes/event": run.peak_bytes / max(events, 1),
        }
    return result


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]i?B)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text}: not a size such as 500MB")
    return int(match[1]) * _UNITS[match[2]]


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    write = commands.add_parser("write")
    write.add_argument("--target", type=_size, required=True)
    write.add_argument("--source", type=Path, default=SOURCE)
    write.add_argument("path", type=Path)
    timing = commands.add_parser("measure")
    timing.add_argument("--no-json", action="store_true", help="leave json.loads out")
    timing.add_argument("path", type=Path)
    options = parser.parse_args()
    if options.command == "write":
        options.path.parent.mkdir(parents=True, exist_ok=True)
        times = write_scaled(options.path, options.target, options.source)
        print(f"{options.path}: {times} repetitions, {options.path.stat().st_size} bytes")
    else:
        print(json.dumps(measure(options.path, with_json=not options.no_json), indent=1))


if __name__ == "__main__":
    main()
