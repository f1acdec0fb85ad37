"""Captures with processes that die, on either side, and an answer of 1 GB."""

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.capture.peers import peer, profile_of

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
        process.wait(20)
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
    with subprocess.Popen(
        [sys.executable, str(DYING)], stdout=subprocess.PIPE, text=True
    ) as process:
        address = f"127.0.0.1:{int(process.stdout.readline())}"
        with pytest.raises(RemoteError, match="cannot be reached"):
            capture(
                request_for(address),
                Repository(tmp_path),
                progress=lambda _, state, __: states.append(state),
            )
        assert process.wait(20) == -signal.SIGKILL
    assert "receiving" in states
    # It was tried again, and nobody was there any more.
    assert states.count("connecting") == 3
    assert not files_in(tmp_path)
    assert not (tmp_path / "plugins" / "profile" / ID).exists()


MEASURE = """
import json, resource, sys
from peakline.capture import CaptureRequest, Target, capture, default_options
from peakline.repository import Repository
request = CaptureRequest((Target("w", sys.argv[1]),), "s1", 1, default_options())
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
            check=True, capture_output=True, text=True, timeout=120,
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
            over.wait(60)
            return b""
        return profile_of()

    with peer(behave) as worker:
        process = subprocess.Popen(command(worker.address, tmp_path))
        assert begun.wait(60)
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
        # The profiler is told by the connection that ended.
        assert over.wait(30)
        assert not files_in(tmp_path)
        again = capture(request_for(worker.address), Repository(tmp_path))
    assert again.outcomes[0].state == "stored"
    assert [path.name for path in files_in(tmp_path)] == ["w.xplane.pb"]


def test_killed_while_it_writes(tmp_path):
    """The file is half there, under no name that anybody reads; the next capture clears it."""
    with big_peer(150 << 20) as (_, address):
        process = subprocess.Popen(command(address, tmp_path))
        directory = tmp_path / "plugins" / "profile" / ID
        limit = time.monotonic() + 60
        while not is_writing(process.pid, directory) and time.monotonic() < limit:
            assert process.poll() is None, "it ended before it was seen to write"
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        assert not [path for path in files_in(tmp_path) if not path.name.startswith(".")]
        result = capture(request_for(address), Repository(tmp_path))
    assert result.outcomes[0].state == "stored"
    assert [path.name for path in files_in(tmp_path)] == ["w.xplane.pb"]


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
        over.wait(60)
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
        assert begun.wait(60)
        stored = tmp_path / "plugins" / "profile" / ID / "good.xplane.pb"
        limit = time.monotonic() + 60
        while not stored.exists() and time.monotonic() < limit:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert over.wait(10)
    assert process.returncode == 130
    assert out == ""
    # What was whole by then is kept, and told.
    assert err == (f"peakline: interrupted; what was whole by then is in {stored.parent}: good\n")
    assert files_in(tmp_path) == [stored]
