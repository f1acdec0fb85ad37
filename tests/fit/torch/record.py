"""Records what PyTorch's CUDA caching allocator does with the sequences of ``sequences.py``.

How to run it, from the top of the repository::

    pip download --no-deps -d wheels torch==2.14.1 nvidia-cuda-runtime==13.0.96 \
        nvidia-cuda-crt==13.0.88
    python -m tests.fit.torch.record wheels/*.whl

It needs g++ and Linux on x86-64, no GPU, and writes snapshots to
``tests/data/fit/torch/<sequence>/`` and what else it saw to ``truth_of/<sequence>/`` beside this
file:

* ``requests.txt.gz``: a request a line, as ``sequences.py`` describes them.
* ``snapshot_start.pickle.gz``: what ``torch.cuda.memory._snapshot`` returns at the end of a run
  with default settings whose history begins before the first request.
* ``snapshot_middle.pickle.gz``: the same run, its history begun in the middle of the requests.
* ``snapshot_oom.pickle.gz`` (of short sequences): the run with 2 MiB less than the smallest
  capacity that suffices, right after the failure.
* ``snapshot_expandable.pickle.gz`` (of short sequences): a run with ``expandable_segments:True``
  and the smallest capacity that suffices then, its history begun before the first request.
* ``truth.json.gz``: ``{"torch", "requests", "most_live", "columns", "runs"}``. A run has a setting
  (``settings``, ``fraction``), a ``placement`` of new memory (``fake_cuda.cpp``) and ``rows``, one
  per capacity tried, in the order of ``columns``. ``smallest`` is the smallest capacity tried (in
  MiB) at which all requests were served, ``safe_from`` the smallest from which on all tried
  capacities serve them.
* ``addresses.json.gz``: for some runs ``{"settings", "fraction", "placement", "capacity_mib",
  "addresses"}``; an address is in units of 512 bytes, the first as it is, each later one as the
  difference to the one before.

Columns: ``capacity_mib``; ``failed``, the number of the first request that failed, or -1;
``peak_allocated``, ``peak_reserved`` (bytes, as ``torch.cuda.memory_stats`` counts them);
``device_allocs``, ``device_frees`` (``num_device_alloc``, ``num_device_free``: segments or, with
expandable segments, mappings); ``retries`` (``num_alloc_retries``); ``digest``: the first 12 digits
of the SHA-256 of the addresses of all served allocations, written in decimal and joined by commas.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import pickle
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fit.torch import real
from tests.fit.torch.real import Setting
from tests.fit.torch.sequences import MIB, Request, most_live, sequences, to_text

DATA = Path(__file__).parents[2] / "data/fit/torch"
TRUTH = Path(__file__).parent / "truth_of"
AMPLE_MIB = 65536
COLUMNS = (
    "capacity_mib",
    "failed",
    "peak_allocated",
    "peak_reserved",
    "device_allocs",
    "device_frees",
    "retries",
    "digest",
)
SETTINGS = (
    Setting(),
    Setting("max_split_size_mb:21"),
    Setting("max_split_size_mb:64"),
    Setting("max_split_size_mb:32,max_non_split_rounding_mb:64"),
    Setting("expandable_segments:True"),
    Setting("roundup_power2_divisions:4"),
    Setting("roundup_power2_divisions:[1:2,16:8,64:4,>:1]"),
    Setting("large_segment_size_mb:48"),
    Setting("large_segment_size_mb:11"),
    Setting("per_process_memory_fraction:0.75"),
    Setting("garbage_collection_threshold:0.6", 0.9),
    Setting("garbage_collection_threshold:0.8", 0.99),
    Setting("garbage_collection_threshold:0.8", 1.0),
    Setting("garbage_collection_threshold:0.7,max_split_size_mb:32", 0.9),
    Setting("expandable_segments:True,roundup_power2_divisions:8"),
    Setting("expandable_segments:True,max_split_size_mb:32"),
    Setting("expandable_segments:True,large_segment_size_mb:48"),
    Setting("expandable_segments:True,garbage_collection_threshold:0.6", 0.9),
    Setting("roundup_power2_divisions:8,max_split_size_mb:64,large_segment_size_mb:32"),
    Setting("throw_on_cudamalloc_oom:True"),
)
_LISTED = {
    "",
    "max_split_size_mb:21",
    "expandable_segments:True",
    "garbage_collection_threshold:0.6",
    "roundup_power2_divisions:[1:2,16:8,64:4,>:1]",
}
_MOST_COARSE = 48
_BORDER = 6
_MOST_FOR_ALL = 1500


@dataclass(frozen=True)
class Sequence:
    """A sequence and where it is."""

    name: str
    rows: list[Request]
    file: Path


class Recorder:
    """Runs the program, two at a time."""

    def __init__(self, program: Path, torch: str) -> None:
        self._program = program
        self._torch = torch
        self._pool = ThreadPoolExecutor(2)

    def one(
        self,
        sequence: Sequence,
        setting: Setting,
        mib: int,
        placement: int = 0,
        history: int = -1,
        detail: int = 1,
    ) -> dict[str, Any]:
        """One run."""
        return real.run(
            self._program, sequence.file, mib * MIB, setting, placement, history, detail
        )

    def record(self, sequence: Sequence) -> None:
        """Write everything of one sequence."""
        runs: list[dict[str, Any]] = []
        listed: list[dict[str, Any]] = []
        for setting in SETTINGS:
            table = self._scan(sequence, setting)
            runs.append(_run(setting, 0, table))
            if setting.text in _LISTED:
                for mib in dict.fromkeys([AMPLE_MIB, runs[-1]["smallest"]]):
                    ran = self.one(sequence, setting, mib)
                    listed.append(_addresses(setting, 0, mib, ran))
        smallest = {run["settings"]: run["smallest"] for run in runs}
        for setting in (Setting(), Setting("expandable_segments:True")):
            near = [smallest[setting.text] + step for step in (-6, -4, -2, 0, 2, 4, 8, 16)]
            for placement in (1, 2):
                table = self._rows(sequence, setting, [*near, AMPLE_MIB], placement)
                runs.append(_run(setting, placement, table))
        folder, beside = DATA / sequence.name, TRUTH / sequence.name
        for made in (folder, beside):
            made.mkdir(parents=True, exist_ok=True)
        _write(beside / "requests.txt.gz", to_text(sequence.rows).encode())
        truth = {
            "torch": self._torch,
            "requests": len(sequence.rows),
            "most_live": most_live(sequence.rows),
            "columns": COLUMNS,
            "runs": runs,
        }
        _write(beside / "truth.json.gz", _json(truth))
        _write(beside / "addresses.json.gz", _json(listed))
        middle = len(sequence.rows) // 2
        expandable = "expandable_segments:True"
        for name, mib, history, text in (
            ("start", AMPLE_MIB, 0, ""),
            ("middle", AMPLE_MIB, middle, ""),
            ("oom", smallest[""] - 2, 0, ""),
            ("expandable", smallest[expandable], 0, expandable),
        ):
            if name in {"oom", "expandable"} and len(sequence.rows) > _MOST_FOR_ALL:
                continue
            ran = self.one(sequence, Setting(text), mib, history=history, detail=2)
            content = pickle.dumps(real.to_snapshot(ran), protocol=4)
            _write(folder / f"snapshot_{name}.pickle.gz", content)

    def _rows(
        self, sequence: Sequence, setting: Setting, capacities: list[int], placement: int = 0
    ) -> dict[int, dict[str, Any]]:
        todo = sorted({mib for mib in capacities if mib > 0})
        ran = self._pool.map(lambda mib: self.one(sequence, setting, mib, placement), todo)
        return dict(zip(todo, ran, strict=True))

    def _scan(self, sequence: Sequence, setting: Setting) -> dict[int, dict[str, Any]]:
        """Runs between what lives at most and what is reserved without a limit, by capacity."""
        table = self._rows(sequence, setting, [AMPLE_MIB])
        low = most_live(sequence.rows) // MIB // 2 * 2
        reserved = table[AMPLE_MIB]["peak_reserved"] / MIB
        share = (setting.fraction or 1) * (0.75 if "per_process" in setting.text else 1)
        share *= 0.55 if "garbage" in setting.text else 1
        high = int(reserved / share) // 2 * 2 + 4
        step = max(2, (high - low) // _MOST_COARSE // 2 * 2)
        table |= self._rows(sequence, setting, [*range(low, high, step), high])
        while True:
            changes = [
                (a, b)
                for a, b in itertools.pairwise(sorted(table))
                if b - a > 2 and (table[a]["failed"] < 0) != (table[b]["failed"] < 0)
            ]
            if not changes:
                break
            table |= self._rows(sequence, setting, [(a + b) // 4 * 2 for a, b in changes])
        smallest = min(mib for mib, ran in table.items() if ran["failed"] < 0)
        near = [smallest + 2 * n for n in range(-_BORDER, _BORDER + 1)]
        return table | self._rows(sequence, setting, [*near, smallest - 1, smallest + 1])


def _run(setting: Setting, placement: int, table: dict[int, dict[str, Any]]) -> dict[str, Any]:
    rows = []
    for mib, ran in sorted(table.items()):
        row = {**ran, "capacity_mib": mib, "digest": digest(ran["addresses"])}
        rows.append([row[name] for name in COLUMNS])
    fitting = [row[0] for row in rows if row[1] < 0]
    failing = [row[0] for row in rows if row[1] >= 0]
    safe = [mib for mib in fitting if mib > max(failing, default=0)]
    return {
        "settings": setting.text,
        "fraction": setting.fraction,
        "placement": real.PLACEMENTS[placement],
        "smallest": min(fitting, default=None),
        "safe_from": min(safe, default=None),
        "rows": rows,
    }


def _addresses(setting: Setting, placement: int, mib: int, ran: dict[str, Any]) -> dict[str, Any]:
    units = [0, *(address // 512 for address in ran["addresses"])]
    return {
        "settings": setting.text,
        "fraction": setting.fraction,
        "placement": real.PLACEMENTS[placement],
        "capacity_mib": mib,
        "addresses": [b - a for a, b in itertools.pairwise(units)],
    }


def digest(addresses: list[int]) -> str:
    """The digest of the addresses of all served allocations."""
    return hashlib.sha256(",".join(map(str, addresses)).encode()).hexdigest()[:12]


def _json(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def main(arguments: list[str] | None = None) -> None:
    """Build the program, run every sequence, write the data."""
    parser = argparse.ArgumentParser(prog="record.py")
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--only", nargs="*", help="sequences to record; all by default")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = real.build(options.wheels, folder)
        recorder = Recorder(program, real.version(folder))
        for label, rows in sequences().items():
            if options.only and label not in options.only:
                continue
            file = folder / f"{label}.txt"
            file.write_text(to_text(rows))
            recorder.record(Sequence(label, rows, file))
            sys.stdout.write(f"{label}: {len(rows)} requests\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
