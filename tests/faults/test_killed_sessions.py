"""Captures and uploads end by SIGKILL at any moment: a session has whole files or is none, and what
is left of it is gone when the next one, or a server, has started.
"""

import random
import re
import signal
from collections import Counter
from pathlib import Path

import httpx
import pytest
from tests.capture.peers import peer, sample_profile
from tests.faults.killing import commands, moments
from tests.faults.test_killed_verbs import COUNTS, SEED
from tests.service.bad_peers import exact_answer
from tests.service.process_numbers import tell
from tests.service.server_process import running_server
from tests.waiting import HANG_S

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
    found = sorted(place.iterdir()) if place.exists() else []
    return {folder.name: sorted(folder.iterdir()) for folder in found}


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
