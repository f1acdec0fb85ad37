"""Shared fixtures: where the repository and its sample data are, and a clean environment."""

from __future__ import annotations

from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent
_SESSIONS = _ROOT / "tests" / "data" / "sessions"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes ``sample`` runs once for every sample profile (see tests/data)."""
    if "sample" in metafunc.fixturenames:
        paths = sorted(_SESSIONS.glob("*/plugins/profile/*/*.xplane.pb*"))
        ids = [f"{path.relative_to(_SESSIONS).parts[0]}-{path.name}" for path in paths]
        metafunc.parametrize("sample", paths, ids=ids)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return _ROOT


@pytest.fixture(scope="session")
def sessions() -> Path:
    """The folder of the sample log directories, one folder each."""
    return _SESSIONS
