"""Verbs that write a file end by SIGKILL at any moment: it is whole, or as it was before, and what
they leave is gone when the next one has run.
"""

import os
from collections import Counter
from pathlib import Path

import pytest
from tests.faults.killing import commands, moments
from tests.service.process_numbers import tell

PROFILE = "tests/data/programs/steps/tf_cut_off.xplane.pb.gz"
COUNTS = [
    1,
    pytest.param(4, marks=pytest.mark.nightly),
    pytest.param(200, marks=pytest.mark.soak),
]
SEED = int(os.environ.get("PEAKLINE_FAULTS_SEED", "18"))

VERBS = {
    "export": ["export", "PATH", "--to", "chrome-trace", "-o", "OUT"],
    "export, packed": ["export", "PATH", "--to", "speedscope", "-o", "OUT.gz"],
    "export of a folder": ["export", "PATH", "--to", "parquet", "-o", "OUT"],
    "report": ["report", "PATH", "-o", "OUT"],
    "sql": ["sql", "PATH", "select name, start_ps from events limit 50", "-o", "OUT"],
}


@pytest.fixture(scope="module")
def runner():
    with commands() as found:
        yield found


def content_of(folder: Path) -> dict[str, bytes]:
    """Every file below, names with dots too, and every folder that has none."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"a folder"
        for path in folder.rglob("*")
        if path.is_file() or not any(path.iterdir())
    }


def named(found: dict[str, bytes]) -> dict[str, bytes]:
    """What has a name of its own."""
    return {name: content for name, content in found.items() if ".peakline." not in name}


def empty(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_file_is_whole_or_as_it_was(runner, root, tmp_path, verb, count):
    """Half of the times there is one already, which is to be replaced."""
    out = tmp_path / "out"
    out.mkdir()
    places = {"PATH": str(root / PROFILE), "OUT": str(out / "f"), "OUT.gz": str(out / "f.gz")}
    words = [places.get(word, word) for word in VERBS[verb]]
    assert runner.run(*words).code == 0  # its imports are done
    again = runner.run(*words, "--force")
    empty(out)
    whole = runner.run(*words)
    assert (whole.code, again.code) == (0, 0)
    expected = content_of(out)
    seen = Counter()
    for number, (first, second) in enumerate(
        zip(moments(whole, count, SEED), moments(again, count, SEED), strict=True)
    ):
        is_there = number % 2
        if not is_there:
            empty(out)
        elif content_of(out) != expected:
            runner.run(*words)
        ended = runner.run(*words, *["--force"] * is_there, at=second if is_there else first)
        found = content_of(out)
        assert named(found) in ([expected] if is_there else [{}, expected]), (first, second)
        seen["killed"] += ended.was_killed
        seen["left something"] += found != named(found)
        seen["whole"] += named(found) == expected
        if found != named(found):
            assert runner.run(*words, "--force").code == 0
            assert content_of(out) == expected, "the next one leaves nothing of the one before"
    tell(f"{verb}: {dict(seen)} of {count}")
    assert seen["killed"] >= count // 2


@pytest.mark.parametrize("count", COUNTS)
def test_a_summary_is_appended_whole_or_not_at_all(runner, root, tmp_path, count):
    """Half of the times there is none yet."""
    summary, killed = tmp_path / "out" / "summary.md", 0
    summary.parent.mkdir()
    words = ["check", root / PROFILE, "--max-peak", "1TB", "--summary", summary]
    runner.run(*words)  # its imports are done
    again = runner.run(*words)
    summary.unlink()
    new = runner.run(*words)
    text = summary.read_text("utf-8")
    for number, (first, second) in enumerate(
        zip(moments(new, count, SEED), moments(again, count, SEED), strict=True)
    ):
        if not number % 2:
            summary.unlink(missing_ok=True)
        elif not summary.exists():
            runner.run(*words)
        before = summary.read_text("utf-8") if summary.exists() else None
        killed += runner.run(*words, at=second if number % 2 else first).was_killed
        after = summary.read_text("utf-8") if summary.exists() else None
        assert after in (before, text if before is None else f"{before}\n{text}"), (first, second)
    runner.run(*words)
    assert [path.name for path in summary.parent.iterdir()] == [summary.name]
    tell(f"check --summary: {killed} killed of {count}")
    assert killed >= count // 2
