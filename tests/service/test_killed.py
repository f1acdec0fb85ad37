"""Servers that are stopped, killed, or out of disk."""

import http.client
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import grpc
import httpx
import pytest
from tests.capture.peers import peer, sample_profile, space
from tests.service.bad_peers import big, exact_answer, half_answer
from tests.service.grpc_client import Client
from tests.service.process_numbers import files_under
from tests.service.server_here import server_here
from tests.service.server_process import running_server
from tests.waiting import HANG_S, until

from peakline.service.foreground import END, RELOAD, EndedBySignal, Signals, leave

LOST = ("receiving", "uploading", "writing")
"""Sessions of which nothing was whole when the server was killed."""
ID = "s"
LARGE = 100 << 20


@pytest.fixture
def healthy(sessions):
    """A profiler that answers with a real profile."""
    content = exact_answer(sample_profile(sessions))
    with peer(lambda *_: content) as there:
        yield there


def start_capture(client, session_id, *hosts):
    request = {"duration_ms": 10}
    return client.start("NewSession", session_id=session_id, hosts=hosts, request=request)


def serving(logdir, **workers):
    words = [
        word for name, address in workers.items() for word in ("--worker", f"{name}={address}")
    ]
    return running_server(logdir, "--access-log", "off", *words, warms_up=False)


def path_of(logdir, session_id):
    return logdir / "plugins" / "profile" / session_id


def written_bytes(server, directory):
    """How much is written so far of a file in ``directory``, whether it has a name or not."""
    sizes = [0]
    for descriptor in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            if descriptor.readlink().is_relative_to(directory) and descriptor.is_file():
                sizes.append(descriptor.stat().st_size)
        except OSError:
            continue
    return max(sizes)


def start_upload(server, session_id):
    """Send the first half of a profile."""
    long = space()
    long.planes[0].event_metadata[1].metadata = bytes(LARGE)
    content = long.SerializeToString()
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=HANG_S)
    connection.putrequest("POST", f"/api/uploads?session_id={session_id}&host=w")
    connection.putheader("Content-Type", "application/octet-stream")
    connection.putheader("Content-Length", str(len(content)))
    connection.endheaders()
    connection.send(content[: LARGE // 2])
    return connection


@pytest.mark.soak
def test_killed_in_the_middle_of_everything_and_started_again(empty, healthy, sessions):
    """One capture receives, one writes, one has stored the first of two hosts, an upload comes
    in: after SIGKILL there is the host that was whole, and nothing of all the rest.
    """
    with (
        half_answer() as half,
        half_answer() as second_half,
        big(LARGE) as large,
        serving(
            empty, a=healthy.address, half=half.address, b=second_half.address, large=large
        ) as server,
        closing(Client(f"127.0.0.1:{server.grpc_port}")) as client,
    ):
        calls = [
            start_capture(client, "receiving", "half"),
            start_capture(client, "partly", "a", "b"),
        ]
        assert half.received.wait(HANG_S)
        assert second_half.received.wait(HANG_S)
        until(lambda: files_under(empty), "the healthy host is stored")
        with closing(start_upload(server, "uploading")):
            uploading = path_of(empty, "uploading")
            until(lambda: written_bytes(server, uploading) > 1 << 20, "the upload is written")
            calls.append(start_capture(client, "writing", "large"))
            writing = path_of(empty, "writing")
            until(lambda: written_bytes(server, writing) or calls[-1].done(), "it writes", 0.001)
            assert server.end(signal.SIGKILL) == -signal.SIGKILL
        assert all(call.exception(timeout=HANG_S) is not None for call in calls)
    whole = "plugins/profile/partly/a.xplane.pb"
    assert files_under(empty) == [whole]
    expect_only_the_whole_one_and_capture_the_others(empty, healthy)
    stored = [f"plugins/profile/{name}/a.xplane.pb" for name in (*LOST, "partly")]
    assert files_under(empty) == sorted(stored)
    assert {(empty / name).read_bytes() for name in stored} == {sample_profile(sessions)}


def expect_only_the_whole_one_and_capture_the_others(logdir, healthy):
    with (
        serving(logdir, a=healthy.address) as server,
        closing(Client(f"127.0.0.1:{server.grpc_port}")) as client,
    ):
        assert "(1 session)" in server.announced
        url = f"http://127.0.0.1:{server.http_port}/api/sessions"
        (session,) = httpx.get(url, timeout=HANG_S).json()
        assert (session["session_id"], session["hosts"]) == ("partly", ["a"])
        assert httpx.get(f"{url}/partly/tools/memory_profile", timeout=HANG_S).status_code == 200
        assert client.call("EnumSessions").error_message == ""
        taken = start_capture(client, "partly", "a").exception(HANG_S)
        assert taken.code() is grpc.StatusCode.ALREADY_EXISTS
        for name in LOST:
            assert httpx.get(f"{url}/{name}", timeout=HANG_S).status_code == 404
            answer = start_capture(client, name, "a").result(HANG_S)
            assert (answer.error_message, answer.empty_trace) == ("", False)
        result = client.call("EnumSessions").sessions
        assert {one.session_id for one in result} == {*LOST, "partly"}
        assert all("memory_profile" in one.available_tools for one in result)
        assert server.end() == 0


@pytest.mark.parametrize(
    "rounds",
    [1, pytest.param(5, marks=pytest.mark.nightly), pytest.param(100, marks=pytest.mark.soak)],
)
def test_of_two_servers_one_makes_the_session(empty, healthy, sessions, rounds):
    """In round after round exactly one wins, and what it stored is whole."""
    release = threading.Event()
    content = exact_answer(sample_profile(sessions))

    def wait(_request, _context, _number):
        release.wait(HANG_S)
        return content

    with (
        peer(wait) as slow,
        serving(empty, w=healthy.address, slow=slow.address) as one,
        server_here(empty, workers={"w": healthy.address, "slow": slow.address}) as two,
        closing(Client(f"127.0.0.1:{one.grpc_port}")) as first,
        closing(Client(f"127.0.0.1:{two.grpc_port}")) as second,
    ):
        for number in range(rounds):
            request = {"session_id": f"r{number}", "hosts": ["w"], "request": {"duration_ms": 1}}
            calls = [client.start("NewSession", **request) for client in (first, second)]
            assert sorted(call.code().name for call in calls) == ["ALREADY_EXISTS", "OK"]
        # The other one is refused while the first is still recording, not at the end.
        recording = start_capture(first, ID, "slow")
        until(lambda: slow.requests, "it records")
        refused = start_capture(second, ID, "slow").exception(HANG_S)
        assert refused.code() is grpc.StatusCode.ALREADY_EXISTS
        assert len(slow.requests) == 1
        release.set()
        assert recording.result(HANG_S).error_message == ""
        ids = {session.session_id for session in second.call("EnumSessions").sessions}
        assert ids == {ID, *(f"r{number}" for number in range(rounds))}
        assert one.end() == 0
    stored = [empty / name for name in files_under(empty)]
    assert len(stored) == rounds + 1
    assert {file.read_bytes() for file in stored} == {sample_profile(sessions)}


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
    result = [over_grpc.details()]
    for answer in (capture_over_http(server), upload(server, large)):
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (503, "UNAVAILABLE")
        result.append(problem["detail"])
    for line in result:
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


_ENDS = (signal.SIGINT, signal.SIGTERM)
_ALL = (*_ENDS, signal.SIGHUP)


@contextmanager
def _saved(signals):
    """A word that does not come fails the test instead of hanging it."""
    saved = threading.Timer(HANG_S, signals._words.put, ("none came",))
    saved.start()
    try:
        yield
    finally:
        saved.cancel()
        saved.join()


def _word(signals):
    """The next word."""
    with _saved(signals):
        return signals.wait()


@contextmanager
def _other_thread():
    """A thread that waits in a call of the system, and may be given signals."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield thread
    over.set()
    thread.join()


@pytest.mark.parametrize("number", _ENDS)
def test_a_signal_is_a_word(number):
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        assert _word(signals) == RELOAD
        os.kill(os.getpid(), number)
        assert _word(signals) == END


@pytest.mark.parametrize(("number", "word"), [(signal.SIGTERM, END), (signal.SIGHUP, RELOAD)])
def test_the_main_thread_is_woken_by_a_signal_that_another_thread_gets(number, word):
    """Nothing interrupts the wait of the main thread then."""
    with Signals() as signals, _other_thread() as other, ThreadPoolExecutor(1) as pool:

        def send():
            # Before, the main thread would see the signal by itself.
            until(_main_thread_waits, "the wait below has begun")
            signal.pthread_kill(other.ident, number)

        sent = pool.submit(send)
        assert _word(signals) == word
        sent.result()


def _main_thread_waits():
    return sys._current_frames()[threading.main_thread().ident].f_code is Signals.wait.__code__


def test_a_burst_of_signals_hides_no_end():
    with Signals() as signals, _saved(signals):
        for _ in range(5000):
            os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        words = [signals.wait()]
        while words[-1] == RELOAD:
            words.append(signals.wait())
    assert words[-1] == END
    assert 2 <= len(words) <= 5001


def test_everything_is_as_before_afterwards():
    mine = []
    woken, writing = os.pipe()
    os.set_blocking(writing, False)
    former = signal.signal(signal.SIGHUP, lambda number, _: mine.append(number))
    former_wakeup = signal.set_wakeup_fd(writing)
    handlers = [signal.getsignal(number) for number in _ALL]
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert _word(signals) == RELOAD
            assert mine == []
        assert [signal.getsignal(number) for number in _ALL] == handlers
        assert not any(thread.name == "signals" for thread in threading.enumerate())
        for end in (signals._numbers, signals._wakeup):
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(end)
        os.kill(os.getpid(), signal.SIGHUP)
        assert mine == [signal.SIGHUP]
        assert os.read(woken, 10) == bytes([signal.SIGHUP])
        assert signal.set_wakeup_fd(former_wakeup) == writing
    finally:
        signal.set_wakeup_fd(former_wakeup)
        signal.signal(signal.SIGHUP, former)
        os.close(woken)
        os.close(writing)


_STUCK = """
import threading
from peakline.service.foreground import leave
from peakline.service.foreground import Signals
with Signals() as signals:
    print("ready", flush=True)
    print(signals.wait(), flush=True)
    STUCK
"""


@pytest.mark.parametrize("stuck", ["while True: pass", "threading.Event().wait()"])
@pytest.mark.parametrize("second", _ENDS)
def test_a_second_end_ends_a_process_whose_main_thread_is_stuck(stuck, second):
    code = _STUCK.replace("STUCK", stuck)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            child.send_signal(signal.SIGTERM)
            assert child.stdout.readline() == "end\n"
            child.send_signal(second)
            assert child.wait(HANG_S) == 130
        finally:
            child.kill()


def test_a_second_end_cleans_up_and_ends_also_when_that_fails(tmp_path):
    chosen = tmp_path / "kept"
    chosen.touch()
    code = _STUCK.replace("STUCK", "threading.Event().wait()").replace(
        "Signals()", "Signals(clean)"
    )
    code = f"import os\ndef clean():\n    os.remove({str(chosen)!r})\n    1 / 0\n{code}"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "end\n"
            child.send_signal(signal.SIGINT)
            assert child.wait(HANG_S) == 130
        finally:
            child.kill()
    assert not chosen.exists()


def test_a_process_is_left_at_once_only_where_a_thread_has_not_ended(monkeypatch):
    codes = []
    monkeypatch.setattr(os, "_exit", codes.append)
    leave(ended=True)
    assert codes == []
    leave(ended=False)
    assert codes == [0]


def _end_the_block(numbers):
    """What the block ends with, and whether signals that come while it cleans up do nothing."""
    cleaned = False
    try:
        with EndedBySignal() as signals:
            try:
                for number in numbers:
                    os.kill(os.getpid(), number)
            finally:
                signals.armed = False
                for number in _ALL:
                    os.kill(os.getpid(), number)
                cleaned = True
    except (KeyboardInterrupt, SystemExit) as error:
        return type(error), error.args, cleaned
    return None, (), cleaned


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (signal.SIGINT, KeyboardInterrupt, ()),
        (signal.SIGTERM, SystemExit, (143,)),
        (signal.SIGHUP, SystemExit, (129,)),
    ],
)
def test_a_signal_ends_a_block_and_none_its_cleaning_up(number, kind, words):
    handlers = [signal.getsignal(each) for each in _ALL]
    assert _end_the_block([number]) == (kind, words, True)
    assert _end_the_block([]) == (None, (), True)
    assert [signal.getsignal(each) for each in _ALL] == handlers
