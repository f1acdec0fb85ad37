"""What two verbs, tools, tables or the page both say is equal, for every sample.

The recordings of pairs are read by `tests.diagnosis.test_diagnosis`, which asks them the same.
"""

from pathlib import Path

import pytest
from tests.consistency.made import MADE
from tests.consistency.rules import check_all
from tests.consistency.said import Said
from tests.diagnosis.scoring import SCORED
from tests.sweeps import DATA, sweep

import peakline

SAMPLES = [
    path.relative_to(DATA).as_posix()
    for path in sorted(DATA.rglob("*"))
    if path.suffix in {".gz", ".pb"}
    and "answers" not in path.parts
    # Of the recordings of one program the first.
    and ("fit" not in path.parts or path.name.startswith(("65536.", "snapshot_start.")))
    and path not in SCORED
]


@pytest.mark.parametrize("path", sweep(SAMPLES))
def test_samples(path: str) -> None:
    with peakline.open(DATA / path) as profile:
        check_all(Said(profile))


@pytest.mark.parametrize("name", MADE)
def test_made_profiles(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(MADE[name]())
    with peakline.open(path) as profile:
        check_all(Said(profile))


def test_all_samples_are_there() -> None:
    assert len(SAMPLES) > 80
