"""What a part of the benchmark measured, as the file ``results/PART.json`` keeps it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Record:
    """One part's last measurement: when, of what, with what, on what, and all its numbers.

    ``measured`` is what the part's program printed, ``seconds`` how long it took. ``commit`` is
    empty where it is not known.
    """

    part: str
    date: str
    command: str
    machine: dict[str, str]
    versions: dict[str, str]
    measured: Any
    commit: str = ""
    seconds: float | None = None


def load(path: Path) -> Record:
    """The record in a file; raises OSError, or TypeError where it is none."""
    return Record(**json.loads(path.read_text()))


def load_all(folder: Path) -> dict[str, Record]:
    """The records of a folder, by part."""
    records = (load(path) for path in sorted(folder.glob("*.json")))
    return {record.part: record for record in records}


def save(record: Record, folder: Path) -> Path:
    """Write a record; its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.part}.json"
    path.write_text(json.dumps(asdict(record), indent=1) + "\n")
    return path
