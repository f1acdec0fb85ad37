"""Captures with processes that die, on either side, and an answer of 1 GB."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.capture.peers import peer, profile_of, waiting_peer
from tests.service.bad_peers import big, dying_process, half_answer
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
def test_a_large_profile_is_never_in_memory(tmp_path, size):
    """It goes to the disk as it comes."""
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
    assert peak < before + 16 * MIB
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


@pytest.mark.parametrize("unnamed", [True, False])
def test_killed_while_it_receives(tmp_path, unnamed):
    """The file is half there, under no name that anybody reads; the next capture clears it."""
    program = "import os, sys, peakline.__main__ as it"
    if not unnamed:
        program += "; del os.O_TMPFILE"  # as on file systems that make no files without a name
    with half_answer() as half:
        words = command(half.address, tmp_path)[3:]
        with subprocess.Popen([sys.executable, "-c", f"{program}; it.main()", *words]) as process:
            assert half.received.wait(HANG_S)
            process.send_signal(signal.SIGKILL)
            assert process.wait(HANG_S) == -signal.SIGKILL
    left = files_in(tmp_path)
    assert [path.name.startswith(".peakline.") for path in left] == [True] * (not unnamed)
    with peer(lambda *_: profile_of()) as worker:
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
