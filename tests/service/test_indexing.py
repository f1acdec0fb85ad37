"""Lists that are answered in time, and what is looked at before anybody asks."""

from __future__ import annotations

import json
import shutil
import threading
import time

import pytest
from tests.service.conftest import SESSIONS
from tests.service.http_client import serving
from tests.waiting import HANG_S

from peakline.deadline import Deadline, check_deadline, within
from peakline.errors import CancelledError, DeadlineError, InputError
from peakline.schema import EnumProfileSessionsAndToolsResponse
from peakline.service import core
from peakline.service.grpc_servicers import Call, Servicers
from peakline.service.indexing import Indexer


class Slow:
    """Looks at ``left`` sessions at once; at others it looks until its caller has no time left."""

    def __init__(self, engine, monkeypatch):
        self.left, self.looked = 1, []
        monkeypatch.setattr(engine, "tools", self.tools)
        monkeypatch.setattr(engine, "known_tools", lambda _: ["known"])

    def tools(self, session):
        if session.session_id not in self.looked:
            while not self.left:
                time.sleep(0.01)
                check_deadline()
            self.left -= 1
            self.looked.append(session.session_id)
        return ["found"]


@pytest.fixture
def made(parts, sample_logdir):
    return parts(sample_logdir)


@pytest.fixture
def slow(made, monkeypatch):
    return Slow(made.engine, monkeypatch)


@pytest.mark.usefixtures("slow")
def test_a_list_is_answered_before_the_deadline(made, monkeypatch):
    monkeypatch.setattr(core, "_LOOKING_SHARE", 0.01)
    with within(Deadline(HANG_S)) as deadline:
        listing = made.analysis.listing("")
        assert not deadline.is_over()
    assert (len(listing.sessions), listing.unfinished) == (4, 3)
    assert listing.notes == ("the tools of 3 of 4 sessions are not all known yet: ask again",)


def test_the_next_list_goes_on(made, slow, monkeypatch):
    monkeypatch.setattr(core, "_LOOKING_S", 1.0)
    asked = []
    made.analysis.on_unfinished = asked.append
    for unfinished in (3, 2, 1):
        listing = made.analysis.listing("")
        assert listing.unfinished == unfinished
        tools = [("found",)] * (4 - unfinished) + [("known",)] * unfinished
        assert [found for _, found in listing.sessions] == tools
        slow.left = 1
    assert made.analysis.listing("").notes == ()
    assert len(asked) == 3


@pytest.mark.usefixtures("slow")
def test_a_list_without_a_deadline_is_answered_too(made, monkeypatch):
    monkeypatch.setattr(core, "_LOOKING_S", 1.0)
    assert made.analysis.listing("").unfinished == len(SESSIONS) - 1


@pytest.mark.usefixtures("slow")
def test_a_caller_who_goes_away_ends_the_list(made):
    with within(Deadline()) as deadline:
        threading.Timer(0.2, deadline.cancel).start()
        with pytest.raises(CancelledError):
            made.analysis.listing("")


def test_a_caller_without_time_gets_no_list(made):
    with within(Deadline(0)), pytest.raises(DeadlineError):
        made.analysis.listing("")


@pytest.mark.usefixtures("slow")
def test_grpc_tells_what_is_not_known_yet(made, monkeypatch):
    monkeypatch.setattr(core, "_LOOKING_S", 1.0)
    with within(Deadline(HANG_S)):
        content = Servicers(made.analysis, made.settings).enum_sessions(b"", Call(None))
    answer = EnumProfileSessionsAndToolsResponse.FromString(content)
    assert len(answer.sessions) == len(SESSIONS)
    assert "3 of 4 sessions are not all known yet" in answer.error_message


def test_http_tells_what_is_not_known_yet(sample_logdir, tmp_path, monkeypatch):
    monkeypatch.setattr(core, "_LOOKING_S", 1.0)
    with serving(tmp_path, sample_logdir) as face:
        Slow(face.engine, monkeypatch)
        answer = face.client.get("/api/sessions")
    assert len(answer.json()) == len(SESSIONS)
    assert "3 of 4 sessions" in json.loads(answer.headers["peakline-notes"])[0]


# -- beforehand -----------------------------------------------------------------------------------


@pytest.fixture
def indexer():
    made = []

    def make(*arguments):
        made.append(Indexer(*arguments))
        return made[-1]

    yield make
    for one in made:
        assert one.stop(HANG_S)


def test_it_looks_at_all_sessions_newest_first(made, slow, indexer):
    slow.left = 99
    analysis = made.analysis
    index = indexer(analysis.sessions, analysis.look, lambda: False)
    index.ask(made.access.repository(""))
    index.start()
    assert index.wait(HANG_S)
    assert slow.looked == sorted(SESSIONS.values(), reverse=True)
    slow.left = 0
    with within(Deadline(HANG_S)):
        assert analysis.listing("").unfinished == 0


def test_a_list_that_was_not_finished_is_finished_behind_it(made, slow, indexer):
    analysis = made.analysis
    index = indexer(analysis.sessions, analysis.look, lambda: False)
    analysis.on_unfinished = index.ask
    index.start()
    with within(Deadline(1)):
        assert analysis.listing("").unfinished
    slow.left = 99
    assert index.wait(HANG_S)
    assert sorted(slow.looked) == sorted(SESSIONS.values())


def test_a_session_that_cannot_be_read_does_not_end_it(made, indexer):
    seen = []

    def look(session):
        seen.append(session)
        raise InputError("nothing")

    index = indexer(made.analysis.sessions, look, lambda: False)
    index.ask(made.access.repository(""))
    index.start()
    assert index.wait(HANG_S)
    assert len(seen) == len(SESSIONS)


def test_a_repository_that_is_gone_does_not_end_it(parts, logdir, tmp_path, indexer):
    other = tmp_path / "other"
    other.mkdir()
    made = parts(other, logdir)
    gone, there = (made.access.repository(str(root)) for root in (other, logdir))
    shutil.rmtree(other)
    seen = []
    index = indexer(made.analysis.sessions, seen.append, lambda: False)
    index.ask(gone)
    index.ask(there)
    index.start()
    assert index.wait(HANG_S)
    assert len(seen) == len(SESSIONS)


def test_it_gives_way_to_requests(made, indexer):
    busy, seen = threading.Event(), []
    busy.set()
    index = indexer(made.analysis.sessions, seen.append, busy.is_set)
    index.ask(made.access.repository(""))
    index.start()
    assert not index.wait(0.3)
    assert seen == []
    busy.clear()
    assert index.wait(HANG_S)
    assert len(seen) == len(SESSIONS)


@pytest.mark.usefixtures("slow")
def test_it_ends_at_once_in_the_middle_of_a_session(made, indexer):
    index = indexer(made.analysis.sessions, made.analysis.look, lambda: False)
    index.ask(made.access.repository(""))
    index.start()
    assert not index.wait(0.2)
    assert index.stop(HANG_S)
    index.start()
    assert index.stop(0)
