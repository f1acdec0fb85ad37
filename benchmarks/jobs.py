"""What the answer about a job costs by its ranks, and beside HTA's load of the same traces.

    python benchmarks/jobs.py --peers hta/bin/python [--repeats 3] [--ranks 16] [--steps 800]

Hosts are a real profile of 164 kB each; ranks are simulated PyTorch traces (``tests/jobs``). Two
workers; executors take turns, HTA, which takes minutes, runs once. Memory is that of the largest
process. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inputs import ROOT
from measure import Run, run_once, summarise

HOST = ROOT / "tests/data/sessions/tf2_multihost/plugins/profile/2026_11_20_17_33_46"
_BESIDE_DASK = 128
_LOAD = "import sys; from hta.trace_analysis import TraceAnalysis as T; T(trace_dir=sys.argv[1])"
_SIMULATE = """
import sys
from pathlib import Path
from tests.jobs.simulated import slow_rank
slow_rank(int(sys.argv[2]), int(sys.argv[3])).write(Path(sys.argv[1]))
"""


def _run(command: Sequence[str | Path], where: Path | None = None) -> Run:
    run = run_once(command, env={"PYTHONPATH": str(where)} if where else None)
    if run.exit_code:
        raise SystemExit(f"{command[0]}: {run.stderr.strip()[-2000:]}")
    return run


def _answers(
    folder: Path, executors: Sequence[str], repeats: int, what: str
) -> Iterator[dict[str, Any]]:
    """The runs of each executor, which take turns."""
    runs: dict[str, list[Run]] = {executor: [] for executor in executors}
    for executor in [*executors] * repeats:
        command = [
            sys.executable, "-m", "peakline.__main__", "summary", folder, "--executor", executor,
            "--workers", "2",
        ]  # fmt: skip
        runs[executor].append(_run(command))
    for executor, own in runs.items():
        lines = own[-1].stdout.count(b"\n")
        yield {"what": f"{what}, {lines} lines", "program": executor} | asdict(summarise(own))


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peers", help="Python that has HolisticTraceAnalysis")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--steps", type=int, default=800)
    wanted = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        content = (HOST / "localhost_56665.xplane.pb").read_bytes()
        for hosts in (10, _BESIDE_DASK, 1000):
            folder = Path(place) / f"{hosts}/plugins/profile/hosts"
            folder.mkdir(parents=True)
            for host in range(hosts):
                (folder / f"host{host:04}.xplane.pb").write_bytes(content)
            executors = ["processes"] + ["dask"] * (hosts == _BESIDE_DASK)
            rows += _answers(folder, executors, wanted.repeats, f"{hosts:,} hosts")
        traces = Path(place) / "traces"
        traces.mkdir()
        count = str(wanted.ranks), str(wanted.steps)
        _run([sys.executable, "-c", _SIMULATE, traces, *count], ROOT)
        size = sum(file.stat().st_size for file in traces.iterdir())
        what = f"{wanted.ranks} ranks of PyTorch, {size / 1e6:.0f} MB packed"
        rows += _answers(traces, ["processes"], wanted.repeats, what)
        if wanted.peers:
            run = _run([wanted.peers, "-c", _LOAD, traces])
            rows.append({"what": f"{what}, load", "program": "HTA"} | asdict(summarise([run])))
    print(json.dumps({"bytes": len(content), "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
