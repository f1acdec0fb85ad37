"""Who answers for the real software: its recorded answers in every test run, itself in
`make conformance`.

A test of ``xprof`` runs with both: recorded, about the samples of the repository; live, also about
those in the folders that PEAKLINE_SAMPLES names. A test of ``live_xprof`` asks about files that it
makes, and is marked ``conformance``.
"""

import os
from collections.abc import Iterator

import pytest

from tests.conformance.oracle import LiveXProf, RecordedXProf, XProf
from tests.conformance.tensorflow import LiveTensorFlow, RecordedTensorFlow, TensorFlow

BOTH = ["recorded", pytest.param("live", marks=pytest.mark.conformance)]


@pytest.fixture(scope="session")
def is_recording() -> bool:
    """Whether the peers are asked again for what is recorded (`make answers`)."""
    return "PEAKLINE_RECORD_ANSWERS" in os.environ


@pytest.fixture(scope="session")
def live_xprof() -> Iterator[LiveXProf]:
    """The library itself, in one process for all tests."""
    library = LiveXProf()
    yield library
    library.close()


@pytest.fixture(scope="session", params=BOTH)
def xprof(request: pytest.FixtureRequest, is_recording: bool) -> Iterator[XProf]:
    """XProf's recorded answers, or the library itself."""
    if request.param == "live":
        yield request.getfixturevalue("live_xprof")
        return
    recorded = RecordedXProf(request.getfixturevalue("live_xprof") if is_recording else None)
    yield recorded
    recorded.close()


@pytest.fixture(scope="session")
def live_tensorflow() -> Iterator[LiveTensorFlow]:
    """TensorFlow itself, in one process for all tests."""
    live = LiveTensorFlow()
    yield live
    live.close()


@pytest.fixture(scope="session", params=BOTH)
def tensorflow(request: pytest.FixtureRequest, is_recording: bool) -> Iterator[TensorFlow]:
    """TensorFlow's recorded answers, or TensorFlow itself."""
    if request.param == "live":
        yield request.getfixturevalue("live_tensorflow")
        return
    recorded = RecordedTensorFlow(
        request.getfixturevalue("live_tensorflow") if is_recording else None
    )
    yield recorded
    recorded.close()
