"""What capturing stores, and what it tells of every host."""

import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.capture.peers import answer_of, peer, profile_of, sample_profile, space
from tests.capture.requests import (
    ID,
    LONG_MS,
    NOWHERE,
    files_of,
    good,
    request_for,
    session_directory,
)
from tests.waiting import HANG_S

import peakline
from peakline.capture import (
    CaptureRequest,
    Target,
    capture,
    capture_deadline_s,
    default_options,
    profile_options,
)
from peakline.errors import ExistsError, RemoteError, UsageError
from peakline.schema import XSpace


def test_the_bytes_are_stored_as_they_came(repository, sessions):
    content = answer_of(sample_profile(sessions))
    with peer(lambda *_: content) as worker:
        result = capture(request_for(worker.address), repository)
    name = worker.address.replace(":", "_")
    assert files_of(repository) == [f"plugins/profile/{ID}/{name}.xplane.pb"]
    stored = (session_directory(repository) / f"{name}.xplane.pb").read_bytes()
    assert content.endswith(stored)
    (outcome,) = result.outcomes
    assert (outcome.state, outcome.size, outcome.error, outcome.attempts) == (
        "stored",
        len(stored),
        "",
        1,
    )
    assert not result.empty_trace
    with peakline.open(repository.logdir) as profile:
        assert profile.table("events").num_rows


def test_a_stored_profile_is_an_xspace(repository):
    halves = answer_of(space(1)) + answer_of(space(2))
    with peer(lambda *_: halves) as worker:
        capture(request_for(worker.address, names=["w"]), repository)
    stored = XSpace.FromString((session_directory(repository) / "w.xplane.pb").read_bytes())
    assert sum(len(line.events) for plane in stored.planes for line in plane.lines) == 3


def test_the_request_is_what_upstreams_client_sends(repository):
    options = profile_options({"host_tracer_level": "3", "tpu_mode": "x"})
    with peer(good) as worker:
        request = request_for(
            worker.address, names=["trainer-0"], options=options, duration_ms=1500, delay_ms=2000
        )
        began, before = time.monotonic(), time.time_ns()
        capture(request, repository)
        seconds, after = time.monotonic() - began, time.time_ns()
    (sent,) = worker.requests
    assert sent.emit_xspace
    assert sent.duration_ms == sent.opts.duration_ms == 1500
    assert sent.max_events == 1_000_000
    assert list(sent.tools)[-1] == "xplane.pb"
    assert len(sent.tools) == 10
    assert sent.session_id == ID
    assert sent.host_name == sent.opts.override_hostname == "trainer-0"
    assert sent.repository_root == f"{repository.logdir}/plugins/profile"
    assert sent.opts.repository_path == repository.logdir
    assert before <= sent.opts.start_timestamp_ns - 2 * 10**9 <= after
    assert sent.opts.host_tracer_level == 3
    assert sent.opts.advanced_configuration["tpu_mode"].string_value == "x"
    assert not request.options.duration_ms  # the caller's own message is left alone
    # gRPC rounds the time that is left up to a tenth of a second, in its header.
    assert 62 - seconds < worker.seconds_left[0] < 62.2


def test_no_delay_starts_at_once(repository):
    with peer(good) as worker:
        capture(request_for(worker.address), repository)
    (sent,) = worker.requests
    assert sent.opts.start_timestamp_ns == 0
    assert sent.host_name == worker.address
    assert sent.opts.override_hostname == ""


@pytest.mark.parametrize(
    ("duration", "delay", "seconds"), [(1000, 0, 60), (40_000, 0, 80), (1000, 5000, 65)]
)
def test_deadline(duration, delay, seconds):
    assert capture_deadline_s(duration, delay) == seconds


def test_many_hosts_record_at_the_same_time(repository):
    together = threading.Barrier(6)

    def behave(*_):
        together.wait(HANG_S)
        return profile_of()

    with ExitStack() as stack:
        workers = [stack.enter_context(peer(behave)) for _ in range(6)]
        result = capture(
            request_for(*(worker.address for worker in workers), timeout_ms=LONG_MS), repository
        )
    assert [outcome.state for outcome in result.outcomes] == ["stored"] * 6
    assert [outcome.address for outcome in result.outcomes] == [w.address for w in workers]
    assert len(files_of(repository)) == 6


def test_one_host_that_fails_does_not_cost_the_others(repository):
    with peer(good) as worker, peer(lambda *_: b"<html>") as broken:
        result = capture(
            request_for(worker.address, broken.address, NOWHERE, names=["a", "b", "c"], attempts=1),
            repository,
        )
    assert [outcome.state for outcome in result.outcomes] == ["stored", "failed", "failed"]
    assert "no ProfileResponse" in result.outcomes[1].error
    assert "cannot be reached" in result.outcomes[2].error
    assert files_of(repository) == [f"plugins/profile/{ID}/a.xplane.pb"]


def test_all_hosts_failing_tells_each_ones_reason(repository):
    with peer(lambda *_: b"\xff" * 9) as broken, pytest.raises(RemoteError) as raised:
        capture(request_for(NOWHERE, broken.address, attempts=1), repository)
    message = str(raised.value)
    assert f"{NOWHERE}: cannot be reached" in message
    assert f"{broken.address}: its answer is damaged" in message
    assert "\n" not in message
    assert not session_directory(repository).exists()


def test_one_empty_host_beside_a_full_one(repository):
    with peer(good) as full, peer(lambda *_: answer_of(empty_trace=True)) as idle:
        result = capture(
            request_for(full.address, idle.address, names=["full", "idle"], attempts=1), repository
        )
    assert [outcome.state for outcome in result.outcomes] == ["stored", "empty"]
    assert not result.empty_trace
    assert files_of(repository) == [f"plugins/profile/{ID}/full.xplane.pb"]


def test_a_session_that_exists_is_refused_before_anybody_is_asked(repository):
    with peer(good) as worker:
        capture(request_for(worker.address), repository)
        before = files_of(repository)
        with pytest.raises(ExistsError):
            capture(request_for(worker.address), repository)
        assert len(worker.requests) == 1
    assert files_of(repository) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": "../up"},
        {"session_id": "a/b"},
        {"session_id": ""},
        {"duration_ms": 0},
        {"attempts": 0},
        {"delay_ms": -1},
        {"timeout_ms": 0},
        {"targets": ()},
        {"targets": (Target("a:1", "h:1"), Target("a_1", "h:2"))},
        {"targets": (Target("a", "h:1"), Target("b", "H:1"))},
    ],
)
def test_requests_that_cannot_work(repository, changes):
    fields = {"targets": (Target("a", NOWHERE),), "duration_ms": 1, "session_id": ID}
    with pytest.raises(UsageError):
        capture(CaptureRequest(**{"options": default_options()} | fields | changes), repository)
    assert not Path(repository.logdir).exists()


def test_bad_host_names_store_nothing(repository, tmp_path):
    with peer(good) as worker, pytest.raises(RemoteError, match="host"):
        capture(request_for(worker.address, names=["../../evil"]), repository)
    assert not list(tmp_path.rglob("*evil*"))


def test_a_disk_that_cannot_be_written_fails_the_host(repository):
    def behave(*_):
        session_directory(repository).rmdir()
        return profile_of()

    with peer(behave) as worker, pytest.raises(RemoteError, match="cannot be stored"):
        capture(request_for(worker.address), repository)
