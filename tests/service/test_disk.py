"""A disk that is full: one clear error, nothing left, everything else goes on."""

import os
import subprocess
from contextlib import closing

import grpc
import httpx
import pytest
from tests.capture.peers import peer, sample_profile, space
from tests.service.bad_peers import exact_answer
from tests.service.grpc_client import Client
from tests.service.process_numbers import files_under
from tests.service.server_here import server_here
from tests.waiting import HANG_S

MIB = 1 << 20
SIZE = 8 * MIB
OLD = "plugins/profile/old/w.xplane.pb"
FULL = "No space left on device"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 8 MiB and 32 files, with a log directory on it."""
    place = tmp_path / "disk"
    place.mkdir()
    options = f"size={SIZE},nr_inodes=32"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        (place / "logs").mkdir()
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def large(sessions):
    """A profile of 6 MiB: a real one, and a plane without events but with a long text."""
    filler = space()
    filler.planes[0].event_metadata[1].metadata = bytes(6 * MIB)
    return sample_profile(sessions) + filler.SerializeToString()


@pytest.fixture
def server(small_disk, sessions, large):
    """A server over the small disk, which holds one session; its worker sends the large one."""
    old = small_disk / "logs" / OLD
    old.parent.mkdir(parents=True)
    old.write_bytes(sample_profile(sessions))
    content = exact_answer(large)
    log = str(small_disk / "access.log")
    with (
        peer(lambda *_: content) as worker,
        server_here(small_disk / "logs", workers={"w": worker.address}, access_log=log) as running,
        closing(Client(f"127.0.0.1:{running.grpc_port}")) as running.client,
    ):
        yield running


def capture_over_grpc(server):
    return server.client.start(
        "NewSession", session_id="new", hosts=["w"], request={"duration_ms": 1}
    ).exception(HANG_S)


def capture_over_http(server):
    body = {"session_id": "new", "hosts": ["w"], "duration_ms": 1}
    return httpx.post(f"{server.url}/api/captures", json=body, timeout=HANG_S)


def upload(server, content):
    return httpx.post(
        f"{server.url}/api/uploads?session_id=new&host=w",
        content=content,
        headers={"Content-Type": "application/octet-stream"},
        timeout=HANG_S,
    )


def expect_all_refused(server, logdir, large):
    """Each face says in one line that the disk is full, and where; none leaves anything."""
    over_grpc = capture_over_grpc(server)
    assert over_grpc.code() is grpc.StatusCode.UNAVAILABLE
    told = [over_grpc.details()]
    for answer in (capture_over_http(server), upload(server, large)):
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (503, "UNAVAILABLE")
        told.append(problem["detail"])
    for line in told:
        assert "session 'new'" in line
        assert line.endswith(FULL)
        assert str(logdir) not in line
        assert "\n" not in line
    assert files_under(logdir) == [OLD]
    assert not (logdir / "plugins/profile/new").exists()
    answer = httpx.get(f"{server.url}/api/sessions/old/tools/memory_profile", timeout=HANG_S)
    assert answer.status_code == 200
    (listed,) = server.client.call("EnumSessions").sessions
    assert listed.session_id == "old"


def fill(disk, free):
    """Fill the disk but for ``free`` bytes."""
    room = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(bytes(room.f_bavail * room.f_frsize - free))
    return [filler]


def use_up_names(disk):
    """Make files until no further one can be made."""
    fillers = [disk / f"filler{number}" for number in range(os.statvfs(disk).f_ffree)]
    for filler in fillers:
        filler.touch()
    return fillers


@pytest.mark.parametrize(
    "occupy",  # but for what is free
    [
        lambda disk: fill(disk, MIB),
        pytest.param(lambda disk: fill(disk, 0), marks=pytest.mark.soak),
        pytest.param(use_up_names, marks=pytest.mark.soak),
    ],
    ids=["enough to begin", "nothing", "not a single name"],
)
def test_a_full_disk_is_told_and_leaves_nothing_until_there_is_room(
    server, small_disk, large, occupy
):
    logdir = small_disk / "logs"
    stored = logdir / "plugins/profile/new/w.xplane.pb"
    fillers = occupy(small_disk)
    expect_all_refused(server, logdir, large)
    for filler in fillers:
        filler.unlink()
    assert capture_over_grpc(server) is None
    assert stored.read_bytes() == large
    stored.unlink()
    stored.parent.rmdir()
    assert upload(server, large).status_code == 201
    assert stored.read_bytes() == large
