"""The command line in this process, and profiles made by hand for it to read."""

import sys
from dataclasses import dataclass

import pytest
from tests.cli.made import path_of
from tests.memory.records import events
from tests.tables.fake import FakeReader

from peakline.__main__ import main


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str


@pytest.fixture
def peakline(capsys):
    """Run the entry point with these words; gives the exit code and both outputs."""

    def run(*words):
        capsys.readouterr()
        return Run(main([str(word) for word in words]), *capsys.readouterr())

    return run


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """A path that opens as a profile with these allocator records, and steps if it knows any."""

    def make(rows, steps=None, losses=None):
        tables = {"allocator_events": events(rows)}
        if steps is not None:
            tables["steps"] = steps
        return path_of(FakeReader(tables, losses=losses), monkeypatch, tmp_path)

    return make


@pytest.fixture
def terminal(monkeypatch, capsys):  # noqa: ARG001  (whose streams are made to be terminals)
    """Make both outputs a terminal of so many columns, without colors."""

    def make(columns):
        for stream in (sys.stdout, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("NO_COLOR", "1")

    return make
