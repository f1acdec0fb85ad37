"""What is told of a host while it is captured: its stages, in their order."""

import threading

import grpc
import pytest
from tests.capture.peers import peer
from tests.capture.requests import NOWHERE, good, request_for
from tests.waiting import HANG_S

from peakline.capture import capture
from peakline.errors import RemoteError


def captured(repository, address, progress=lambda _state: None, **changes):
    """The stages that were told."""
    seen = []

    def note(_host, state, _detail):
        seen.append(state)
        progress(state)

    capture(request_for(address, **changes), repository, progress=note)
    return seen


def test_each_stage_is_told_once_and_when_it_begins(repository):
    recording, begun = threading.Event(), threading.Event()

    def behave(_request, context, _number):
        assert recording.wait(HANG_S)
        context.send_initial_metadata(())
        assert begun.wait(HANG_S)
        return good()

    def progress(state):
        {"recording": recording, "receiving": begun}.get(state, threading.Event()).set()

    with peer(behave) as worker:
        seen = captured(repository, worker.address, progress)
    assert seen == ["connecting", "recording", "receiving", "stored"]


def test_every_attempt_has_its_own(repository):
    def behave(_request, context, number):
        if number == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        return good()

    with peer(behave) as worker:
        seen = captured(repository, worker.address)
    first, again = ["connecting", "recording"], ["connecting", "recording", "receiving", "stored"]
    assert seen == [*first, "retrying", *again]


def test_a_host_that_nobody_reaches_has_none(repository):
    seen = []
    with pytest.raises(RemoteError):
        capture(
            request_for(NOWHERE, attempts=1),
            repository,
            progress=lambda _host, state, _detail: seen.append(state),
        )
    assert seen == ["connecting", "failed"]
