"""A clock that is set: forward, back, and while something is going on."""

import threading
import time

import httpx
import pytest
from tests.capture.peers import peer, profile_of, sample_profile
from tests.faults.test_log_directories import BINARY
from tests.service.server_process import running_server
from tests.waiting import HANG_S

from peakline.capture import default_session_id
from peakline.errors import ExistsError
from peakline.repository import Repository

DAY = 86_400
SET = """
import time
from pathlib import Path
real = {{"time": time.time, "time_ns": time.time_ns}}
def by():
    return float(Path({path!r}).read_text() or 0)
time.time = lambda: real["time"]() + by()
time.time_ns = lambda: real["time_ns"]() + int(by() * 1e9)
"""


@pytest.fixture
def clock(tmp_path):
    """What the server's wall clock is wrong by, in seconds."""
    file = tmp_path / "clock"
    file.write_text("0")
    return file


@pytest.fixture
def logdir(tmp_path):
    place = tmp_path / "logs"
    place.mkdir()
    return place


def test_a_server_whose_clock_is_set(logdir, sessions, clock):
    """Deadlines, the ids of sessions and what is remembered hold, whatever the clock says."""
    recording, go_on = threading.Event(), threading.Event()

    def behave(*_):
        recording.set()
        assert go_on.wait(HANG_S)
        return profile_of()

    with (
        peer(behave) as slow,
        peer(lambda *_: profile_of()) as worker,
        running_server(
            logdir, "--access-log", "off", "--worker", f"w={worker.address}",
            "--worker", f"slow={slow.address}", warms_up=False, before=SET.format(path=str(clock)),
        ) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.http_port}", timeout=HANG_S) as http,
    ):  # fmt: skip

        def capture(**more):
            body = {"hosts": ["w"], "duration_ms": 1} | more
            answers.append(http.post("/api/captures", json=body))

        def stored():
            return {one["session_id"] for one in http.get("/api/sessions").json()}

        answers = []
        long = threading.Thread(target=capture, kwargs={"session_id": "long", "hosts": ["slow"]})
        long.start()
        assert recording.wait(HANG_S)
        for wrong in (DAY, -DAY, 0, 0, -1, -2):
            clock.write_text(str(wrong))
            capture()
            upload = http.post("/api/uploads", content=sample_profile(sessions), headers=BINARY)
            assert upload.status_code == 201
        go_on.set()
        long.join(HANG_S)
        assert [answer.status_code for answer in answers] == [201] * 7
        assert "long" in stored()
        assert len(stored() - {"long"}) == 12, "an id that a session has is not given again"
        assert http.get("/api/sessions/long/tools/overview_page").status_code == 200
        assert server.end() == 0


def test_a_second_may_see_many_sessions(logdir, monkeypatch):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    repository = Repository(logdir)
    names = []
    for _ in range(5):
        names.append(default_session_id(repository))
        with repository.create_session(names[-1]) as session:
            session.write("w", lambda stream: stream.write(b"x"))
    assert names == [
        time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(now + later)) for later in range(5)
    ]


def test_there_is_an_end_to_looking_for_a_name(logdir, monkeypatch):
    monkeypatch.setattr(Repository, "is_free", lambda *_: False)
    with pytest.raises(ExistsError, match="no session id is free near the present time"):
        default_session_id(Repository(logdir))
