"""Sweeps over samples: a fixed choice of them in ``make test``, the others in ``make nightly``.

The choice is `tests/chosen.toml`, a reason beside each.
"""

import functools
import inspect
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.each_row import Test, each_row

DATA = Path(__file__).parent / "data"
Chosen = Callable[[Any], bool]


@functools.cache
def choice() -> dict[str, dict[str, str]]:
    """Of the recordings of pairs and of all other samples (below ``tests/data``) the choice, and
    why each is in it.
    """
    return tomllib.loads(Path(__file__).with_name("chosen.toml").read_text(encoding="utf-8"))


def is_chosen(sample: Path | str) -> bool:
    """Whether it is a pair's name, or a file or folder below ``tests/data``, that is chosen."""
    path = (DATA / sample).absolute()
    if str(sample) in choice()["pairs"]:
        return True
    if not path.is_relative_to(DATA):
        return False
    name = path.relative_to(DATA).as_posix()
    return any(name == one or one.startswith(f"{name}/") for one in choice()["samples"])


def sweep(samples: Iterable[Any], chosen: Chosen = is_chosen) -> list[Any]:
    """The samples as parameters of a test: those that are not chosen are marked ``nightly``."""
    return [
        pytest.param(sample, id=_name(sample), marks=() if chosen(sample) else pytest.mark.nightly)
        for sample in samples
    ]


def _name(sample: object) -> str:
    path = Path(str(sample))
    return path.relative_to(DATA).as_posix() if path.is_relative_to(DATA) else path.as_posix()


def each_sample(
    name: str, samples: Iterable[Any], chosen: Chosen = is_chosen
) -> Callable[[Test], Test]:
    """As `each_row` of one name, as two tests: of the chosen samples, and of all others nightly."""
    every = list(samples)
    parts = {
        "chosen": [sample for sample in every if chosen(sample)],
        "others": [sample for sample in every if not chosen(sample)],
    }

    def decorate(test: Test) -> Test:
        runs = {part: each_row(name, rows)(test) for part, rows in parts.items() if rows}
        assert "chosen" in runs, "of a sweep something is in every run"

        @functools.wraps(runs["chosen"])
        def run(*args: Any, part_of_sweep: str, **fixtures: Any) -> None:
            runs[part_of_sweep](*args, **fixtures)

        del run.__wrapped__
        signature = inspect.signature(runs["chosen"])
        part = inspect.Parameter("part_of_sweep", inspect.Parameter.KEYWORD_ONLY)
        run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), part])
        marks = {"chosen": (), "others": pytest.mark.nightly}
        values = [pytest.param(one, marks=marks[one]) for one in runs]
        return pytest.mark.parametrize("part_of_sweep", values)(run)

    return decorate
