"""How fast text becomes wire bytes, beside google.protobuf.text_format doing the same.

    python benchmarks/text.py [LOG [GRAPH]]

LOG is a text log with memory records, GRAPH a GraphDef or another message in text format (both
may be gzip files; the default are the sample files). One core, content in memory and repeated to
the size asked for; the best of several runs.
"""

from __future__ import annotations

import argparse
import gzip
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_DATA = Path(__file__).parent.parent / "tests/data"
_BLOCK = 4 << 20
_REFERENCE_BYTES = 1_000_000
"""The reference reads this much of a log: it takes its time."""


@dataclass(frozen=True)
class Speed:
    """Megabytes of text per second, of one core: ours and the reference's."""

    megabytes: float
    peakline: float
    reference: float

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.peakline / self.reference


def measure_log(path: Path, megabytes: float = 200, runs: int = 5) -> Speed:
    """The records of a log, repeated to ``megabytes``, into the log's binary form.

    The reference finds the records with a regular expression per line and parses each.
    """
    from google.protobuf import text_format

    from peakline import schema
    from peakline.wire.log_lines import MemoryLogScanner

    log = _content(path)
    text = np.frombuffer(log * max(1, round(megabytes * 1e6 / len(log))), np.uint8)

    def ours() -> None:
        scanner = MemoryLogScanner()
        for start in range(0, text.size, _BLOCK):
            scanner.feed(text[start : start + _BLOCK])
        scanner.finish()

    some = log[:_REFERENCE_BYTES].decode("utf-8", "replace")
    record = re.compile(r"__LOG_MEMORY__ (\w+) \{ (?:goo\.gle/debug\w+\s+)?(.*)\}\s*$")

    def theirs() -> None:
        for line in some.split("\n")[:-1]:
            result = record.search(line)
            if result is not None:
                text_format.Parse(result[2], schema.message(f"tensorflow.{result[1]}")())

    return Speed(
        text.size / 1e6, text.size / 1e6 / _best(ours, runs), len(some) / 1e6 / _best(theirs, 2)
    )


def measure_text(path: Path, full_name: str, megabytes: float = 50, runs: int = 5) -> Speed:
    """A message in text format into wire bytes.

    The text is repeated, which for a message means that its repeated fields are longer; fields
    at the top that can be there only once are left out.
    """
    from google.protobuf import text_format

    from peakline import schema
    from peakline.wire import text_to_wire

    kind, descriptor = schema.message(full_name), schema.descriptor(full_name)
    singular = [field.name for field in descriptor.fields if not field.is_repeated]
    once = _content(path)
    repeated = re.sub(rb"(?ms)^(%s) \{.*?^\}\n" % "|".join(singular).encode(), b"", once)
    text = np.frombuffer(repeated * max(1, round(megabytes * 1e6 / len(repeated))), np.uint8)
    result = text_to_wire(text, descriptor)
    if result.error:
        raise ValueError(f"{path}: {result.error} at byte {result.error_at}")
    return Speed(
        text.size / 1e6,
        text.size / 1e6 / _best(lambda: text_to_wire(text, descriptor), runs),
        len(once) / 1e6 / _best(lambda: text_format.Parse(once, kind()), 2),
    )


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def _best(work: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest of ``runs``, after one that is not counted."""
    work()
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "log", nargs="?", type=Path, default=_DATA / "memory_log/tf1_control_flow.log.gz"
    )
    parser.add_argument("graph", nargs="?", type=Path, default=_DATA / "text/graph.pbtxt.gz")
    parser.add_argument("--message", default="tensorflow.GraphDef", help="what GRAPH holds")
    options = parser.parse_args()
    for name, speed in (
        ("memory log", measure_log(options.log)),
        (options.message, measure_text(options.graph, options.message)),
    ):
        print(
            f"{name}: {speed.peakline:.0f} MB/s of {speed.megabytes:.0f} MB, text_format "
            f"{speed.reference:.1f} MB/s: {speed.ratio:.0f} times"
        )


if __name__ == "__main__":
    main()
