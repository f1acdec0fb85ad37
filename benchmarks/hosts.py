"""What a question to many hosts costs, in threads and in processes, whole `peakline tool` runs.

    python benchmarks/hosts.py [--hosts 64] [--tool pod_viewer] [--runs 3] [--executors threads ...]

The session is made of copies of a real profile of 1 MB, each of a profiler that began a little
later than the one before. The answers of all executors must be equal. Memory is that of the
asking process; workers are not in it.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from pathlib import Path

from measure import machine, run_once, summarise

SOURCE = (
    Path(__file__).parent.parent
    / "tests/data/sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
)
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
    """Measure and print a table; 1 where the answers differ."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--tool", default="pod_viewer")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--executors", nargs="+", default=["threads", "processes"])
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = write_session(Path(place), wanted.hosts)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{wanted.tool} of {wanted.hosts} hosts, {size / 2**20:.0f} MiB")
        print(", ".join(f"{what}: {told}" for what, told in machine().items()))
        answers = set()
        for name in wanted.executors:
            command = [
                sys.executable, "-m", "peakline.cli.main", "tool", wanted.tool, str(folder),
                "--executor", name,
            ]  # fmt: skip
            runs = [run_once(command) for _ in range(wanted.runs)]
            failed = [run for run in runs if run.exit_code]
            if failed:
                print(f"{name}: {failed[0].stderr}", file=sys.stderr)
                return 1
            answers |= {run.stdout for run in runs}
            told = summarise(runs)
            span = f"({told.wall_least_s:.2f} to {told.wall_most_s:.2f})"
            memory = f"{told.peak_bytes / 2**20:5.0f} MiB"
            print(f"{name:10} {told.wall_s:6.2f} s {span}  CPU {told.cpu_s:6.2f} s  {memory}")
    if len(answers) > 1:
        print("the answers differ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
