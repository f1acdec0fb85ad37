"""Verbs and sessions that are killed."""

import os
import random
import re
import signal
from collections import Counter
from pathlib import Path

import httpx
import pytest
from tests.capture.peers import peer, sample_profile
from tests.faults.killing import commands, moments
from tests.service.bad_peers import exact_answer
from tests.service.process_numbers import tell
from tests.service.server_process import running_server
from tests.waiting import HANG_S

PROFILE = "tests/data/programs/steps/tf_cut_off.xplane.pb.gz"
COUNTS = [1, pytest.param(4, marks=pytest.mark.nightly), pytest.param(200, marks=pytest.mark.soak)]
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
    with commands() as result:
        yield result


def content_of(folder: Path) -> dict[str, bytes]:
    """Every file below, names with dots too, and every folder that has none."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"a folder"
        for path in folder.rglob("*")
        if path.is_file() or not any(path.iterdir())
    }


def named(result: dict[str, bytes]) -> dict[str, bytes]:
    """What has a name of its own."""
    return {name: content for name, content in result.items() if ".peakline." not in name}


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
        result = content_of(out)
        assert named(result) in ([expected] if is_there else [{}, expected]), (first, second)
        seen["killed"] += ended.was_killed
        seen["left something"] += result != named(result)
        seen["whole"] += named(result) == expected
        if result != named(result):
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


KILLED = """
import os, signal, sys
from peakline.service.uploading import Uploads
upload, at = Uploads.upload, {at}
def counted(*words):
    calls = 0
    def count(_frame, event, _argument):
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1
            if calls == at:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(count)
    try:
        return upload(*words)
    finally:
        sys.setprofile(None)
        print(f"calls: {{calls}}", file=sys.stderr, flush=True)
Uploads.upload = counted
"""


def tree(logdir: Path) -> dict[str, list[Path]]:
    """The files of every session's directory, hidden ones too."""
    place = logdir / "plugins" / "profile"
    result = sorted(place.iterdir()) if place.exists() else []
    return {folder.name: sorted(folder.iterdir()) for folder in result}


def broken(logdir: Path, content: bytes) -> list[str]:
    """Sessions that are none, or have something else than a whole file, or say they are made."""
    return [
        name
        for name, files in tree(logdir).items()
        if [(file.name, file.read_bytes()) for file in files] != [("w.xplane.pb", content)]
        or (logdir / "plugins" / "profile" / name).stat().st_mode & 0o1000
    ]


@pytest.mark.parametrize("count", COUNTS)
def test_a_capture_is_whole_or_none(sessions, tmp_path, count):
    content = sample_profile(sessions)
    answer = exact_answer(content)
    seen = Counter()
    with commands() as runner, peer(lambda *_: answer) as worker:

        def run(name, at=None):
            return runner.run(
                "capture", worker.address, "--logdir", tmp_path, "--session-id", name,
                "--host-name", "w", "--duration", "1ms", "--attempts", 1, at=at,
            )  # fmt: skip

        assert run("first").code == 0
        whole = run("second")
        assert whole.code == 0
        for at in moments(whole, count, SEED):
            killed = f"killed{at}"
            before = set(tree(tmp_path))
            seen["killed"] += run(killed, at).was_killed
            visible = [
                file
                for files in tree(tmp_path).values()
                for file in files
                if not file.name.startswith(".peakline.")
            ]
            assert {file.read_bytes() for file in visible} == {content}, at
            seen["left something"] += bool(broken(tmp_path, content))
            seen["whole"] += killed in tree(tmp_path) and bool(tree(tmp_path)[killed])
            assert run(f"next{at}").code in (0, 2)
            assert broken(tmp_path, content) == [], at
            assert before <= set(tree(tmp_path))
    tell(f"capture: {dict(seen)} of {count}")
    assert seen["killed"] >= count // 2


@pytest.mark.parametrize("count", COUNTS)
def test_an_upload_is_whole_or_none(sessions, tmp_path, count):
    """The next server begins with what the one before has left."""
    content = sample_profile(sessions)
    chance, calls, seen = random.Random(SEED), 0, Counter()

    def upload(number, at):
        with running_server(
            tmp_path, "--access-log", "off", warms_up=False, before=KILLED.format(at=at)
        ) as server:
            assert broken(tmp_path, content) == [], (number, at)
            url = f"http://127.0.0.1:{server.http_port}/api/uploads?session_id=s{number}&host=w"
            try:
                answer = httpx.post(
                    url, content=content, timeout=HANG_S,
                    headers={"Content-Type": "application/octet-stream"},
                )  # fmt: skip
                assert answer.status_code == 201
            except httpx.TransportError:
                assert server.process.wait(HANG_S) == -signal.SIGKILL
                seen["killed"] += 1
                return 0
            return int(re.findall(r"\d+", server.wait_for("calls: "))[0])

    for number in range(count + 1):
        # The first one says how many there are.
        calls = upload(number, chance.randint(1, calls) if number else 0) or calls
        files = tree(tmp_path).get(f"s{number}")
        seen["whole"] += bool(files)
        seen["left something"] += bool(broken(tmp_path, content))
    with running_server(tmp_path, "--access-log", "off", warms_up=False):
        assert broken(tmp_path, content) == []
    tell(f"upload: {dict(seen)} of {count}")
    assert seen["killed"] >= count // 2
    assert [path.name for path in tmp_path.iterdir()] == ["plugins"]
