"""A repository to capture into, and no time lost between attempts."""

from pathlib import Path

import pytest
from tests.capture.requests import no_pauses

from peakline.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "logs")


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    no_pauses(monkeypatch)
