"""Log directories that go away, are replaced or read-only, and clocks that are set."""

import shutil
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager

import grpc
import httpx
import pytest
from tests.capture.peers import peer, profile_of, sample_profile, space
from tests.faults.test_killed_verbs import PROFILE
from tests.service.bad_peers import exact_answer
from tests.service.grpc_client import Client
from tests.service.server_here import server_here
from tests.service.server_process import running_server
from tests.waiting import HANG_S

from peakline.capture import default_session_id
from peakline.errors import ExistsError
from peakline.repository import Repository

OLD = "plugins/profile/old/w.xplane.pb"
BINARY = {"Content-Type": "application/octet-stream"}
MIB = 1 << 20


@pytest.fixture
def profile(sessions):
    return sample_profile(sessions)


@pytest.fixture
def logdir(tmp_path, profile):
    place = tmp_path / "logs"
    (place / OLD).parent.mkdir(parents=True)
    (place / OLD).write_bytes(profile)
    return place


@pytest.fixture
def worker(profile):
    answer = exact_answer(profile)
    with peer(lambda *_: answer) as there:
        yield there


@pytest.fixture
def server(logdir, worker):
    with server_here(logdir, workers={"w": worker.address}) as running:
        yield running


def listed(server):
    answer = httpx.get(f"{server.url}/api/sessions", timeout=HANG_S)
    assert answer.status_code == 200
    return [session["session_id"] for session in answer.json()]


def upload(server, content, name="new"):
    url = f"http://127.0.0.1:{server.http_port}/api/uploads?session_id={name}&host=w"
    return httpx.post(url, content=content, headers=BINARY, timeout=HANG_S)


def capture(server, name="new", **more):
    body = {"session_id": name, "hosts": ["w"], "duration_ms": 1} | more
    url = f"http://127.0.0.1:{server.http_port}/api/captures"
    return httpx.post(url, json=body, timeout=HANG_S)


def memory_of(server, name):
    return httpx.get(f"{server.url}/api/sessions/{name}/tools/memory_profile", timeout=HANG_S)


def expect_one_line(answer, code, logdir):
    assert answer.status_code == code, answer.text
    detail = answer.json()["detail"]
    assert detail.isprintable()
    assert str(logdir) not in detail


def test_a_log_directory_that_goes_away_and_comes_back(server, logdir, profile):
    assert listed(server) == ["old"]
    assert memory_of(server, "old").status_code == 200
    away = logdir.with_name("away")
    logdir.rename(away)
    assert httpx.get(f"{server.url}/healthz", timeout=HANG_S).status_code == 200
    for answer in (
        httpx.get(f"{server.url}/api/sessions", timeout=HANG_S),
        memory_of(server, "old"),
    ):
        expect_one_line(answer, 404, logdir)
    with closing(Client(f"127.0.0.1:{server.grpc_port}")) as client:
        error = client.start("EnumSessions").exception(HANG_S)
    assert (error.code(), error.details()) == (
        grpc.StatusCode.NOT_FOUND,
        "(root): no such directory",
    )
    away.rename(logdir)
    assert listed(server) == ["old"]
    assert memory_of(server, "old").status_code == 200
    assert upload(server, profile).status_code == 201
    assert sorted(listed(server)) == ["new", "old"]


@pytest.mark.nightly
def test_a_log_directory_that_is_another_one(server, logdir, sessions, profile):
    """Nothing of the old one is answered from memory."""
    assert memory_of(server, "old").status_code == 200
    logdir.rename(logdir.with_name("away"))
    shutil.copytree(sessions / "jax_captured", logdir)
    assert listed(server) == ["2026_11_20_17_04_52"]
    expect_one_line(memory_of(server, "old"), 404, logdir)
    assert capture(server).status_code == 201
    assert (logdir / "plugins/profile/new/w.xplane.pb").read_bytes() == profile


@pytest.mark.nightly
def test_a_log_directory_that_is_removed_while_something_is_stored_in_it(logdir, profile):
    """The answer comes when the directory has gone."""
    answer = exact_answer(profile)

    def behave(*_):
        shutil.rmtree(logdir)
        return answer

    with peer(behave) as worker, server_here(logdir, workers={"w": worker.address}) as server:
        expect_one_line(capture(server), 503, logdir)
        logdir.mkdir()
        assert upload(server, profile).status_code == 201
        assert listed(server) == ["new"]


@contextmanager
def mounted(place, *options):
    """A file system of its own; skips where none can be mounted."""
    command = ["mount", "-t", "tmpfs", *options, "tmpfs", str(place)]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_disk_that_becomes_read_only(tmp_path, profile, worker):
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk):
        (disk / "logs" / OLD).parent.mkdir(parents=True)
        (disk / "logs" / OLD).write_bytes(profile)
        with server_here(disk / "logs", workers={"w": worker.address}) as server:
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            for answer in (capture(server), upload(server, profile)):
                expect_one_line(answer, 503, disk)
                assert answer.json()["detail"].endswith("Read-only file system")
            assert memory_of(server, "old").status_code == 200
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
            assert capture(server).status_code == 201


@pytest.mark.nightly
def test_a_file_that_may_not_be_so_large(logdir, profile, worker):
    """The system's limit for the process, which has a signal of its own."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({MIB}, {MIB}))"
    words = (logdir, "--access-log", "off", "--worker", f"w={worker.address}")
    filler = space()
    filler.planes[0].event_metadata[1].metadata = bytes(2 * MIB)
    large = profile + filler.SerializeToString()
    with running_server(*words, warms_up=False, before=limit) as server:
        expect_one_line(upload(server, large), 503, logdir)
        assert not (logdir / "plugins/profile/new").exists()
        assert len(profile) < MIB
        assert upload(server, profile).status_code == 201
        assert capture(server, "captured").status_code == 201
        assert server.end() == 0


LIMITED = """
import resource, sys
from peakline.__main__ import main
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main())
"""


@pytest.mark.parametrize("there", [None, "", "# Before\n"])
def test_a_summary_that_has_no_room_is_as_it_was(root, tmp_path, there):
    summary = tmp_path / "summary.md"
    if there is not None:
        summary.write_text(there)
    command = ["check", str(root / PROFILE), "--max-peak", "1TB", "--summary", str(summary)]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(len(there or "") + 10), *command],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 3
    assert (summary.read_text() if summary.exists() else None) == there
    assert done.stderr == f"peakline: {summary}: cannot be written: File too large\n"


@pytest.mark.nightly
def test_a_start_removes_what_killed_servers_left(logdir):
    place = logdir / "plugins" / "profile"
    for folder in (place / "dead", logdir / "train" / "plugins" / "profile" / "dead"):
        folder.mkdir(parents=True)
        folder.chmod(0o1755)
    (place / "made by others").mkdir()
    with server_here(logdir, read_only=True):
        pass
    assert (place / "dead").exists(), "a server that stores nothing changes nothing"
    with server_here(logdir) as server:
        assert sorted(path.name for path in place.iterdir()) == ["made by others", "old"]
        assert server._warm_up.wait(HANG_S)
    assert not list((logdir / "train" / "plugins" / "profile").iterdir())


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
def logdir_of_clock(tmp_path):
    place = tmp_path / "logs"
    place.mkdir()
    return place


def test_a_server_whose_clock_is_set(logdir_of_clock, sessions, clock):
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
            logdir_of_clock, "--access-log", "off", "--worker", f"w={worker.address}",
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


def test_a_second_may_see_many_sessions(logdir_of_clock, monkeypatch):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    repository = Repository(logdir_of_clock)
    names = []
    for _ in range(5):
        names.append(default_session_id(repository))
        with repository.create_session(names[-1]) as session:
            session.write("w", lambda stream: stream.write(b"x"))
    assert names == [
        time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(now + later)) for later in range(5)
    ]


def test_there_is_an_end_to_looking_for_a_name(logdir_of_clock, monkeypatch):
    monkeypatch.setattr(Repository, "is_free", lambda *_: False)
    with pytest.raises(ExistsError, match="no session id is free near the present time"):
        default_session_id(Repository(logdir_of_clock))
