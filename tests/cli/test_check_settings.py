"""Limits from pyproject.toml or a file: found upward, beaten by the command line, never misread."""

import json
from pathlib import Path

import pytest
from tests.analysis.records import alloc
from tests.each_row import each_row

TABLE = "[tool.peakline.check]\n"
ROWS = [alloc(1, 3 * 2**20, op="p", allocator="gpu", in_use_bytes=3 * 2**20)]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository whose folder ``deep/er`` is the working directory."""
    folder = tmp_path / "repository"
    (folder / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(folder / "deep" / "er")
    return folder


def test_the_next_pyproject_upward_that_has_limits_counts(peakline, opened, project):
    path = opened(ROWS)
    (project / "pyproject.toml").write_text(f'{TABLE}max-peak = "4MB"\nmax_fragmentation = 0.5\n')
    (project / "deep" / "pyproject.toml").write_text('[project]\nname = "part"\n')
    run = peakline("check", path)
    assert (run.code, run.out.splitlines()[2].strip()) == (
        0,
        f"limits from {project}/pyproject.toml [tool.peakline.check]: max-peak, max-fragmentation",
    )
    assert "pass    peak           gpu          3.1 MB   4.0 MB" in run.out


def test_the_command_line_wins(peakline, opened, project):
    (project / "pyproject.toml").write_text(f'{TABLE}max-peak = "1MiB"\nmax-limit = "1TB"\n')
    run = peakline("check", opened(ROWS), "--max-peak", "3MiB", "--json")
    assert json.loads(run.out)["checks"][0]["limit"] == 3 * 2**20
    assert json.loads(run.out)["limits_from"] == {
        "max-peak": "command line",
        "max-limit": str(project / "pyproject.toml"),
    }
    assert peakline("check", opened(ROWS), "--max-peak", "3MiB", "--no-config").code == 0


def test_a_file_of_its_own(peakline, opened, project):
    (project / "deep" / "er" / "gate.toml").write_text("max-peak = 3145728\n")
    run = peakline("check", opened(ROWS), "--config", "gate.toml")
    assert (run.code, run.out.splitlines()[2].strip()) == (0, "limits from gate.toml: max-peak")


def test_a_baseline_in_a_file_is_found_from_there(peakline, opened, project):
    path = opened(ROWS)
    (project / "pyproject.toml").write_text(f'{TABLE}baseline = "ci/figures.json"\n')
    (project / "ci").mkdir()
    assert peakline("check", path, "--update-baseline").code == 0
    assert (project / "ci" / "figures.json").is_file()
    run = peakline("check", path)
    assert (run.code, "BASELINE" in run.out) == (0, True)


@each_row(
    ("text", "message"),
    [
        (f'{TABLE}max-peek = "1GB"\n', "has no key 'max-peek'; did you mean max-peak?"),
        (f"{TABLE}colour = 1\n", "has no key 'colour'; there is: max-peak,"),
        (f'{TABLE}max-peak = "much"\n', "max-peak: 'much' is no size"),
        (f"{TABLE}max-peak = true\n", "max-peak is a text or a number, not True"),
        (f"{TABLE}max-step-time = 150\n", "max-step-time: '150' is no time"),
        (f'{TABLE}max-peak = ["1"]\n', "max-peak is a text or a number"),
        (TABLE, "no limit is given, neither by"),
    ],
)
def test_a_file_that_says_nothing_sensible_is_refused(peakline, opened, project, text, message):
    (project / "pyproject.toml").write_text(text)
    run = peakline("check", opened(ROWS))
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert message in run.err


@pytest.mark.usefixtures("project")
def test_a_file_that_cannot_be_read(peakline, opened):
    path = opened(ROWS)
    assert peakline("check", path, "--config", "none.toml").err == (
        "peakline: none.toml: no such file\n"
    )
    Path("bad.toml").write_text("max-peak = \n")
    run = peakline("check", path, "--config", "bad.toml")
    assert (run.code, run.err.count("\n")) == (3, 1)
    assert "bad.toml: is no TOML: " in run.err
    assert peakline("check", path, "--config", "bad.toml", "--no-config").code == 2
