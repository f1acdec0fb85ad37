"""What a question to many hosts costs, in threads and in processes, whole `peakline tool` runs.

    python benchmarks/hosts.py [--hosts 64] [--tool pod_viewer] [--repeats 3]

The session is made of copies of a real profile of 1 MB, each of a profiler that began a little
later than the one before. The answers of all executors must be equal. Memory is that of the
asking process; workers are not in it. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from inputs import SOURCE
from measure import run_once, summarise

EXECUTORS = ("threads", "processes")
LATER_NS = 1_000_000
_START = "profile_start_time"


def write_session(logdir: Path, hosts: int) -> Path:
    """A session of ``hosts`` copies of `SOURCE`, begun 1 ms after each other; its directory."""
    from peakline.schema import XSpace

    folder = logdir / "plugins" / "profile" / "hosts"
    folder.mkdir(parents=True)
    space = XSpace.FromString(gzip.decompress(SOURCE.read_bytes()))
    for host in range(hosts):
        (folder / f"host{host:03}.xplane.pb").write_bytes(space.SerializeToString())
        for plane in space.planes:
            for stat in plane.stats:
                if plane.stat_metadata[stat.metadata_id].name == _START:
                    stat.uint64_value += LATER_NS
    return folder


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--tool", default="pod_viewer")
    parser.add_argument("--repeats", type=int, default=3)
    wanted = parser.parse_args()
    rows, answers = [], set()
    with tempfile.TemporaryDirectory() as place:
        folder = write_session(Path(place), wanted.hosts)
        size = sum(file.stat().st_size for file in folder.iterdir())
        for name in EXECUTORS:
            command = [
                sys.executable, "-m", "peakline.__main__", "tool", wanted.tool, str(folder),
                "--executor", name,
            ]  # fmt: skip
            # The first run, which brings modules into the page cache, does not count.
            first, *runs = [run_once(command) for _ in range(1 + wanted.repeats)]
            for run in (first, *runs):
                if run.exit_code:
                    raise SystemExit(f"{name}: {run.stderr.strip()[-2000:]}")
                answers.add(run.stdout)
            rows.append({"executor": name} | asdict(summarise(runs)))
    if len(answers) > 1:
        raise SystemExit("the answers differ")
    result = {"tool": wanted.tool, "hosts": wanted.hosts, "bytes": size, "rows": rows}
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
