"""Captures with processes that die, on either side, and an answer of 1 GB."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.capture.peers import answer_of, peer, profile_of, space, waiting_peer
from tests.service.bad_peers import big, dying_process
from tests.waiting import HANG_S, until

from peakline.capture import CaptureRequest, Target, capture, default_options
from peakline.errors import RemoteError
from peakline.repository import Repository

MIB = 1 << 20
ID = "s1"


def request_for(address, **changes):
    fields = {"duration_ms": 1, "options": default_options(), "session_id": ID} | changes
    return CaptureRequest((Target("w", address),), **fields)


def command(address, logdir, *more):
    return [sys.executable, "-m", "peakline.__main__", "capture", address, "--logdir", str(logdir),
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

    with dying_process("when-told") as (address, process):
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
told = []
for name, address in zip(("small", "large"), sys.argv[2:], strict=True):
    request = CaptureRequest(
        (Target("w", address),), name, 1, default_options(), timeout_ms=180_000
    )
    (outcome,) = capture(request, Repository(sys.argv[1])).outcomes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    told.append([outcome.state, outcome.size, peak])
print(json.dumps(told))
"""


@pytest.mark.parametrize(
    "size", [48 * MIB, pytest.param(10**9, marks=pytest.mark.soak)], ids=["48 MiB", "1 GB"]
)
def test_a_large_profile_costs_no_copy_of_ours(tmp_path, size):
    """Inside gRPC a large answer lies three times while it is received; we add nothing."""
    with ExitStack() as stack:
        addresses = [stack.enter_context(big(one)) for one in (MIB, size)]
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, str(tmp_path), *addresses],
            check=True, capture_output=True, text=True, timeout=HANG_S,
        )  # fmt: skip
    (*_, before), (state, stored, peak) = json.loads(done.stdout)
    (file,) = files_in(tmp_path / "plugins" / "profile" / "large")
    assert (state, stored) == ("stored", file.stat().st_size)
    assert size < stored < size + 1000
    assert peak < before + 3 * size + size // 2
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


HALF_WRITTEN = """
import sys, threading
from peakline.capture import host
from peakline.__main__ import main

class Half:
    def __init__(self, stream):
        self.stream, self.is_begun = stream, False

    def write(self, content):
        if self.is_begun:
            self.stream.flush()
            print("writing", flush=True)
            threading.Event().wait()
        self.is_begun = True
        return self.stream.write(content)

write = host.HostCapture._write
host.HostCapture._write = lambda capture, answer, stream: write(capture, answer, Half(stream))
host._CHUNK = 1 << 16
sys.exit(main())
"""


def test_killed_while_it_writes(tmp_path):
    """The file is half there, under no name that anybody reads; the next capture clears it."""
    long = space()
    long.planes[0].event_metadata[1].metadata = bytes(MIB)
    with peer(lambda *_: answer_of(long)) as worker:
        words = [sys.executable, "-c", HALF_WRITTEN, *command(worker.address, tmp_path)[3:]]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "writing\n"
            process.send_signal(signal.SIGKILL)
            assert process.wait(HANG_S) == -signal.SIGKILL
        assert not [path for path in files_in(tmp_path) if not path.name.startswith(".")]
        result = capture(request_for(worker.address), Repository(tmp_path))
    assert result.outcomes[0].state == "stored"
    assert [path.name for path in files_in(tmp_path)] == ["w.xplane.pb"]


def test_ctrl_c_on_the_command_line(tmp_path):
    waiting, begun, over = waiting_peer()
    with waiting as hung, peer(lambda *_: profile_of()) as worker:
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
