"""What is told of a host while it is captured: its stages, in their order."""

import grpc
import pytest
from tests.capture.peers import peer
from tests.capture.requests import NOWHERE, good, request_for

from peakline.capture import capture
from peakline.errors import RemoteError

READY = grpc.ChannelConnectivity.READY


class Channel:
    """A channel that says that it is connected when a test lets it."""

    def __init__(self, channel):
        self._channel = channel
        self.connected = lambda _: None

    def subscribe(self, callback):
        self.connected = callback

    def unsubscribe(self, callback):
        assert callback == self.connected

    def __getattr__(self, name):
        return getattr(self._channel, name)


@pytest.fixture
def channels(monkeypatch):
    made, make = [], grpc.insecure_channel

    def wrapped(*arguments, **options):
        made.append(Channel(make(*arguments, **options)))
        return made[-1]

    monkeypatch.setattr(grpc, "insecure_channel", wrapped)
    return made


def captured(repository, address, progress=lambda *_: None, **changes):
    """The stages that were told."""
    seen = []

    def note(_host, state, _detail):
        seen.append(state)
        progress(state)

    capture(request_for(address, **changes), repository, progress=note)
    return seen


def test_an_answer_has_all_stages_however_late_the_connection_is_told_of(repository, channels):
    def late(state):
        if state in ("receiving", "stored"):
            channels[0].connected(READY)

    with peer(good) as worker:
        seen = captured(repository, worker.address, late)
    channels[0].connected(READY)
    assert seen == ["connecting", "recording", "receiving", "stored"]


def test_a_stage_is_told_once(repository, channels):
    def behave(*_):
        for _ in range(3):
            channels[0].connected(READY)
        return good()

    with peer(behave) as worker:
        seen = captured(repository, worker.address)
    assert seen == ["connecting", "recording", "receiving", "stored"]


def test_nothing_is_told_of_an_attempt_that_is_over(repository, channels):
    def behave(_request, context, number):
        if number == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        return good()

    def late(state):
        if state == "retrying":
            channels[0].connected(READY)

    with peer(behave) as worker:
        seen = captured(repository, worker.address, late)
    again = ["connecting", "recording", "receiving", "stored"]
    assert seen[seen.index("retrying") :] == ["retrying", *again]


def test_a_host_that_nobody_reaches_has_none(repository):
    seen = []
    with pytest.raises(RemoteError):
        capture(
            request_for(NOWHERE, attempts=1),
            repository,
            progress=lambda _host, state, _detail: seen.append(state),
        )
    assert seen == ["connecting", "failed"]
