"""Captures with processes that die, on either side, and an answer of 1 GB."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.capture.peers import peer, profile_of
from tests.waiting import HANG_S, until

from peakline.capture import CaptureRequest, Target, capture, default_options
from peakline.errors import RemoteError
from peakline.repository import Repository

BIG = Path(__file__).with_name("big_peer.py")
DYING = Path(__file__).with_name("dying_peer.py")
ID = "s1"


@contextmanager
def big_peer(size):
    process = subprocess.Popen(
        [sys.executable, str(BIG), str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, f"127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.wait(HANG_S)
        process.stdout.close()


def request_for(address, **changes):
    fields = {"duration_ms": 1, "options": default_options(), "session_id": ID} | changes
    return CaptureRequest((Target("w", address),), **fields)


def command(address, logdir, *more):
    return [sys.executable, "-m", "peakline.cli.main", "capture", address, "--logdir", str(logdir),
            "--session-id", ID, "--host-name", "w", "--duration", "1ms", *more]  # fmt: skip


def files_in(directory):
    return [path for path in Path(directory).rglob("*") if path.is_file()]


def test_a_profiler_killed_in_the_middle_of_its_answer(tmp_path):
    states = []

    def progress(_host, state, _detail):
        states.append(state)
        if state == "receiving":
            process.stdin.write("die\n")
            process.stdin.flush()

    words = [sys.executable, str(DYING), "when-told"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        address = f"127.0.0.1:{int(process.stdout.readline())}"
        with pytest.raises(RemoteError, match="cannot be reached"):
            capture(request_for(address), Repository(tmp_path), progress=progress)
        assert process.wait(HANG_S) == -signal.SIGKILL
    # It was tried again, and nobody was there any more.
    assert states.count("connecting") == 3
    assert not files_in(tmp_path)
    assert not (tmp_path / "plugins" / "profile" / ID).exists()


MEASURE = """
import json, resource, sys
from peakline.capture import CaptureRequest, Target, capture, default_options
from peakline.repository import Repository
request = CaptureRequest(
    (Target("w", sys.argv[1]),), "s1", 1, default_options(), timeout_ms=180_000
)
(outcome,) = capture(request, Repository(sys.argv[2])).outcomes
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([outcome.state, outcome.size, peak]))
"""


def test_one_gigabyte_costs_no_copy_of_ours(tmp_path):
    """Inside gRPC a large answer lies three times while it is received; we add nothing."""
    size = 10**9
    with big_peer(size) as (_, address):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, address, str(tmp_path)],
            check=True, capture_output=True, text=True, timeout=HANG_S,
        )  # fmt: skip
    state, stored, peak = json.loads(done.stdout)
    (file,) = files_in(tmp_path)
    assert (state, stored) == ("stored", file.stat().st_size)
    assert size < stored < size + 1000
    assert peak < 3 * size + (400 << 20)
    file.unlink()


def test_our_own_death_leaves_nothing_and_the_id_free(tmp_path):
    begun = threading.Event()
    over = threading.Event()

    def behave(_request, context, number):
        if number == 1:
            context.add_callback(over.set)
            begun.set()
            over.wait(HANG_S)
            return b""
        return profile_of()

    with peer(behave) as worker:
        process = subprocess.Popen(command(worker.address, tmp_path))
        assert begun.wait(HANG_S)
        process.send_signal(signal.SIGKILL)
        assert process.wait(HANG_S) == -signal.SIGKILL
        # The profiler is told by the connection that ended.
        assert over.wait(HANG_S)
        assert not files_in(tmp_path)
        again = capture(request_for(worker.address), Repository(tmp_path))
    assert again.outcomes[0].state == "stored"
    assert [path.name for path in files_in(tmp_path)] == ["w.xplane.pb"]


def test_killed_while_it_writes(tmp_path):
    """The file is half there, under no name that anybody reads; the next capture clears it."""
    # A machine that is busy may look away while a file is written: then the next one is larger.
    for size in (150 << 20, 300 << 20, 600 << 20):
        logdir = tmp_path / str(size)
        with big_peer(size) as (_, address):
            if not killed_while_writing(address, logdir):
                continue
            assert not [path for path in files_in(logdir) if not path.name.startswith(".")]
            result = capture(request_for(address), Repository(logdir))
        assert result.outcomes[0].state == "stored"
        assert [path.name for path in files_in(logdir)] == ["w.xplane.pb"]
        return
    pytest.fail("it was never seen to write")


def killed_while_writing(address, logdir):
    """Capture, and kill that when it writes; whether it was seen to."""
    process = subprocess.Popen(command(address, logdir))
    directory = logdir / "plugins" / "profile" / ID
    until(lambda: process.poll() is not None or is_writing(process.pid, directory), pause_s=0.001)
    process.send_signal(signal.SIGKILL)
    return process.wait(HANG_S) == -signal.SIGKILL


def is_writing(pid, directory):
    """Whether the process has begun to write a file in ``directory``, named or not."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = descriptor.readlink()
            if target.is_relative_to(directory) and descriptor.stat().st_size > 1 << 20:
                return True
        except OSError:
            continue
    return False


def test_ctrl_c_on_the_command_line(tmp_path):
    begun, over = threading.Event(), threading.Event()

    def behave(_request, context, _number):
        context.add_callback(over.set)
        begun.set()
        over.wait(HANG_S)
        return b""

    with peer(behave) as hung, peer(lambda *_: profile_of()) as worker:
        words = command(hung.address, tmp_path)
        words[words.index("w")] = "hung"
        words[words.index(hung.address)] = f"{hung.address},{worker.address}"
        process = subprocess.Popen(
            [*words, "--host-name", "good"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert begun.wait(HANG_S)
        stored = tmp_path / "plugins" / "profile" / ID / "good.xplane.pb"
        until(stored.exists)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_S)
        assert over.wait(HANG_S)
    assert process.returncode == 130
    assert out == ""
    # What was whole by then is kept, and told.
    assert err == (f"peakline: interrupted; what was whole by then is in {stored.parent}: good\n")
    assert files_in(tmp_path) == [stored]
