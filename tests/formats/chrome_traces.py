"""Tiny traces for the tests of `peakline.formats.chrome_trace`."""

import json
from pathlib import Path
from typing import Any

import peakline


def opened(folder: Path, trace: Any) -> peakline.Profile:
    """The profile of a trace, given as JSON text, or as what is to be written as JSON."""
    path = folder / "trace.json"
    path.write_bytes(trace if isinstance(trace, bytes) else json.dumps(trace).encode())
    return peakline.open(str(path))


def event(phase: str, ts: float, name: str = "e", **more: Any) -> dict[str, Any]:
    """One event of thread 1 in process 1."""
    return {"ph": phase, "pid": 1, "tid": 1, "ts": ts, "name": name, **more}


def rows(profile: peakline.Profile, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of a table."""
    return [tuple(row[c] for c in columns) for row in profile.columns(table).to_pylist()]


def warned(profile: peakline.Profile) -> dict[str, int]:
    """What was lost, by kind."""
    return {warning.kind: warning.count for warning in profile.warnings}
