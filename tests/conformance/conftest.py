"""Who answers for the real software: its recorded answers in every test run, itself in
`make conformance`.

A test of ``xprof`` runs with both: recorded, about the samples of the repository (in every test run
the chosen ones of `tests/chosen.toml`, whole in `make nightly`); live, also about those in the
folders that PEAKLINE_SAMPLES names. A test of ``live_xprof`` asks about files that it
makes, and is marked ``conformance``.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.oracle import LiveXProf, RecordedXProf, XProf
from tests.conformance.tensorflow import LiveTensorFlow, RecordedTensorFlow, TensorFlow

BOTH = [
    "recorded",
    pytest.param("whole", marks=pytest.mark.nightly, id="recorded_whole"),
    pytest.param("live", marks=pytest.mark.conformance),
]


def _both(request: pytest.FixtureRequest, live: str, recorded: type) -> Iterator[Any]:
    """A peer itself, or its recorded answers, which `make answers` records again."""
    if request.param == "live":
        yield request.getfixturevalue(live)
        return
    again = "PEAKLINE_RECORD_ANSWERS" in os.environ
    known = recorded(request.getfixturevalue(live) if again else None)
    known.is_whole = request.param == "whole"
    with closing(known) as answers:
        yield answers


@pytest.fixture(scope="session")
def live_xprof() -> Iterator[LiveXProf]:
    """The library itself, in one process for all tests."""
    with closing(LiveXProf()) as library:
        yield library


@pytest.fixture(scope="session", params=BOTH)
def xprof(request: pytest.FixtureRequest) -> Iterator[XProf]:
    """XProf's recorded answers, or the library itself."""
    yield from _both(request, "live_xprof", RecordedXProf)


@pytest.fixture(scope="session")
def live_tensorflow() -> Iterator[LiveTensorFlow]:
    """TensorFlow itself, in one process for all tests."""
    with closing(LiveTensorFlow()) as live:
        yield live


@pytest.fixture(scope="session", params=BOTH)
def tensorflow(request: pytest.FixtureRequest) -> Iterator[TensorFlow]:
    """TensorFlow's recorded answers, or TensorFlow itself."""
    yield from _both(request, "live_tensorflow", RecordedTensorFlow)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What asks a program itself about random inputs runs nightly: `.ci/run` asks about samples and
    named cases.
    """
    folder = Path(__file__).parent
    for item in items:
        if item.path.parent == folder and isinstance(item, pytest.Function):
            names = {*item.function.__code__.co_names, *item.fixturenames}
            if item.get_closest_marker("conformance") and names & {"SEEDS", "made"}:
                item.add_marker(pytest.mark.nightly)
