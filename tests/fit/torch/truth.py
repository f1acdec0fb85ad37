"""Reads what ``record.py`` wrote."""

from __future__ import annotations

import gzip
import itertools
import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fit.torch.sequences import Request

DATA = Path(__file__).parents[2] / "data/fit/torch"
TRUTH = Path(__file__).parent / "truth_of"


@dataclass(frozen=True)
class Outcome:
    """What one run did; the columns are explained in ``record.py``."""

    settings: str
    fraction: float
    placement: str
    capacity_mib: int
    failed: int
    peak_allocated: int
    peak_reserved: int
    device_allocs: int
    device_frees: int
    retries: int
    digest: str


@dataclass(frozen=True)
class Listed:
    """The addresses of all served allocations of one run."""

    settings: str
    fraction: float
    placement: str
    capacity_mib: int
    addresses: list[int]


def names() -> list[str]:
    """The recorded sequences."""
    return sorted(path.name for path in DATA.iterdir() if path.is_dir())


def requests(name: str) -> list[Request]:
    """The requests of a sequence."""
    return [_request(line) for line in requests_text(name).splitlines()]


def requests_text(name: str) -> str:
    """The requests of a sequence as the program reads them."""
    return _read(name, "requests.txt.gz").decode()


def _request(line: str) -> Request:
    kind, *numbers = line.split()
    return (kind, *(float(one) if "." in one else int(one) for one in numbers))


def truth(name: str) -> dict[str, Any]:
    """The whole document."""
    return json.loads(_read(name, "truth.json.gz"))


def outcomes(name: str) -> list[Outcome]:
    """Every run of a sequence."""
    content = truth(name)
    return [
        Outcome(
            run["settings"],
            run["fraction"],
            run["placement"],
            **dict(zip(content["columns"], row, strict=True)),
        )
        for run in content["runs"]
        for row in run["rows"]
    ]


def listed(name: str) -> list[Listed]:
    """The runs whose addresses are written."""
    return [
        Listed(
            **{
                **entry,
                "addresses": [512 * one for one in itertools.accumulate(entry["addresses"])],
            }
        )
        for entry in json.loads(_read(name, "addresses.json.gz"))
    ]


def snapshot(name: str, which: str) -> dict[str, Any] | None:
    """A recorded snapshot, or None where the sequence has none of that kind."""
    path = DATA / name / f"snapshot_{which}.pickle.gz"
    if not path.exists():
        return None
    return pickle.loads(gzip.decompress(path.read_bytes()))  # noqa: S301 - a file of our own


def _read(name: str, file: str) -> bytes:
    return gzip.decompress((TRUTH / name / file).read_bytes())
