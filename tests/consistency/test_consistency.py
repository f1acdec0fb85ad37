"""What two verbs, tools, tables or the page both say is equal, for every sample."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.consistency.made import MADE
from tests.consistency.rules import RULES, Rule
from tests.consistency.said import Said
from tests.each_row import each_row
from tests.shared import DATA, shared

import peakline

SAMPLES = [
    path.relative_to(DATA).as_posix()
    for path in sorted(DATA.rglob("*"))
    if path.suffix in {".gz", ".pb"}
    and "answers" not in path.parts
    # Of the recordings of one program the first.
    and ("fit" not in path.parts or path.name.startswith(("65536.", "snapshot_start.")))
]


@cache
def of_sample(path: str) -> Said:
    return Said(shared(path))


@pytest.fixture(scope="module")
def of_made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Said]]:
    folder: Path = tmp_path_factory.mktemp("made")
    opened = {}
    for name, make in MADE.items():
        (folder / name).write_bytes(make())
        opened[name] = peakline.open(folder / name)
    yield {name: Said(profile) for name, profile in opened.items()}
    for profile in opened.values():
        profile.close()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@each_row("path", SAMPLES)
def test_samples(rule: Rule, path: str) -> None:
    rule(of_sample(path))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@each_row("name", MADE)
def test_made_profiles(rule: Rule, of_made: dict[str, Said], name: str) -> None:
    rule(of_made[name])


def test_all_samples_are_there() -> None:
    assert len(SAMPLES) > 80
