"""What the answer about a job costs by its ranks, and beside HTA's load of the same traces.

    python benchmarks/jobs.py --peers hta/bin/python [--repeats 1] [--ranks 4] [--steps 400]

Hosts are a real profile of 164 kB each; ranks are simulated PyTorch traces (``tests/jobs``). Two
workers; memory is that of the largest process. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
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


def _answers(folder: Path, executor: str, repeats: int, what: str) -> dict[str, Any]:
    command = [
        sys.executable, "-m", "peakline.__main__", "summary", folder, "--executor", executor,
        "--workers", "2",
    ]  # fmt: skip
    runs = [_run(command) for _ in range(repeats)]
    lines = runs[-1].stdout.count(b"\n")
    return {"what": f"{what}, {lines} lines", "program": executor} | asdict(summarise(runs))


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peers", help="Python that has HolisticTraceAnalysis")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=400)
    wanted = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        content = (HOST / "localhost_56665.xplane.pb").read_bytes()
        for hosts in (10, _BESIDE_DASK, 1000):
            folder = Path(place) / f"{hosts}/plugins/profile/hosts"
            folder.mkdir(parents=True)
            for host in range(hosts):
                (folder / f"host{host:04}.xplane.pb").write_bytes(content)
            rows.append(_answers(folder, "processes", wanted.repeats, f"{hosts:,} hosts"))
            if hosts == _BESIDE_DASK:
                rows.append(_answers(folder, "dask", wanted.repeats, f"{hosts:,} hosts"))
        traces = Path(place) / "traces"
        traces.mkdir()
        count = str(wanted.ranks), str(wanted.steps)
        _run([sys.executable, "-c", _SIMULATE, traces, *count], ROOT)
        size = sum(file.stat().st_size for file in traces.iterdir())
        what = f"{wanted.ranks} ranks of PyTorch, {size / 1e6:.0f} MB packed"
        rows.append(_answers(traces, "processes", wanted.repeats, what))
        if wanted.peers:
            run = _run([wanted.peers, "-c", _LOAD, traces])
            rows.append({"what": f"{what}, load", "program": "HTA"} | asdict(summarise([run])))
    print(json.dumps({"bytes": len(content), "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
