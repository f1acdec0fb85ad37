"""Lists that are answered in time, and what is looked at before anybody asks."""

import json
import shutil
import threading
import time
from typing import ClassVar

import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.http_client import serving
from tests.waiting import HANG_S, EndedDeadline

from peakline.deadline import Deadline, check_deadline, current_deadline, within
from peakline.errors import CancelledError, DeadlineError, InputError
from peakline.schema import EnumProfileSessionsAndToolsResponse
from peakline.service import background, capturing, core
from peakline.service.background import Indexer
from peakline.service.grpc_calls import Call, Servicers


class Looking(EndedDeadline):
    """The time of a list."""

    given: ClassVar[list[float]] = []

    def __init__(self, seconds=None):
        super().__init__()
        self.given.append(seconds)


class Slow:
    """Looks at ``left`` sessions at once. At the next one the time of a list is over; whoever else
    looks at it does so as long as there are none left: ``waits`` is set.
    """

    def __init__(self, engine, monkeypatch):
        self.left, self.looked, self.waits = 1, [], threading.Event()
        monkeypatch.setattr(engine, "tools", self.tools)
        monkeypatch.setattr(engine, "known_tools", lambda _: ["known"])
        monkeypatch.setattr(capturing, "Deadline", Looking)
        monkeypatch.setattr(Looking, "given", [])

    def tools(self, session):
        if session.session_id not in self.looked:
            while not self.left:
                deadline = current_deadline()
                if isinstance(deadline, Looking):
                    deadline.end()
                self.waits.set()
                check_deadline()
                time.sleep(0.005)
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
def test_a_list_is_answered_before_the_deadline(made):
    with within(Deadline(HANG_S)) as deadline:
        listing = made.analysis.listing("")
        assert not deadline.is_over()
    assert (len(listing.sessions), listing.unfinished) == (4, 3)
    assert listing.notes == ("the tools of 3 of 4 sessions are not all known yet: ask again",)


class Has(Deadline):
    """A caller who has so many seconds left, at any time."""

    def __init__(self, seconds):
        super().__init__()
        self._seconds = seconds

    def remaining(self):
        return self._seconds


@each_row(("has", "looks"), [(None, 10), (1000, 10), (5, 4), (0.5, 0.4)])
@pytest.mark.usefixtures("slow")
def test_a_list_looks_at_sessions_for_a_part_of_the_time(made, monkeypatch, has, looks):
    monkeypatch.setattr(core, "_LOOKING_S", 10)
    Looking.given.clear()
    with within(Has(has)):
        assert made.analysis.listing("").unfinished
    assert Looking.given == [looks]


def test_the_next_list_goes_on(made, slow):
    request = []
    made.analysis.on_unfinished = request.append
    for unfinished in (3, 2, 1):
        listing = made.analysis.listing("")
        assert listing.unfinished == unfinished
        tools = [("found",)] * (4 - unfinished) + [("known",)] * unfinished
        assert [result for _, result in listing.sessions] == tools
        slow.left = 1
    assert made.analysis.listing("").notes == ()
    assert len(request) == 3


def test_a_caller_who_goes_away_ends_the_list(made, slow, monkeypatch):
    monkeypatch.setattr(Looking, "end", lambda _: None)
    with within(Deadline()) as deadline:

        def leave():
            assert slow.waits.wait(HANG_S)
            deadline.cancel()

        leaver = threading.Thread(target=leave)
        leaver.start()
        with pytest.raises(CancelledError):
            made.analysis.listing("")
        leaver.join()


def test_a_caller_without_time_gets_no_list(made):
    with within(Deadline(0)), pytest.raises(DeadlineError):
        made.analysis.listing("")


@pytest.mark.usefixtures("slow")
def test_grpc_tells_what_is_not_known_yet(made):
    with within(Deadline(HANG_S)):
        content = Servicers(made.analysis, made.settings).enum_sessions(b"", Call(None))
    answer = EnumProfileSessionsAndToolsResponse.FromString(content)
    assert len(answer.sessions) == len(SESSIONS)
    assert "3 of 4 sessions are not all known yet" in answer.error_message


def test_http_tells_what_is_not_known_yet(sample_logdir, tmp_path, monkeypatch):
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
    assert analysis.listing("").unfinished
    slow.left = 99
    assert index.wait(HANG_S)
    assert sorted(slow.looked) == sorted(SESSIONS.values())


@each_row("error", [InputError("nothing"), KeyError("unforeseen"), MemoryError()])
def test_a_session_that_cannot_be_read_does_not_end_it(made, indexer, error):
    seen = []

    def look(session):
        seen.append(session)
        raise error

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


def test_it_gives_way_to_requests(made, indexer, monkeypatch):
    monkeypatch.setattr(background, "_PATIENCE_S", HANG_S)
    request, busy, seen = threading.Semaphore(0), threading.Event(), []
    busy.set()

    def is_busy():
        request.release()
        return busy.is_set()

    index = indexer(made.analysis.sessions, seen.append, is_busy)
    index.ask(made.access.repository(""))
    index.start()
    for _ in range(3):
        assert request.acquire(timeout=HANG_S)
    assert seen == []
    busy.clear()
    assert index.wait(HANG_S)
    assert len(seen) == len(SESSIONS)


def test_requests_without_end_do_not_keep_it_for_ever(made, indexer, monkeypatch):
    monkeypatch.setattr(background, "_PATIENCE_S", 0.01)
    seen = []
    index = indexer(made.analysis.sessions, seen.append, lambda: True)
    index.ask(made.access.repository(""))
    index.start()
    assert index.wait(HANG_S)
    assert len(seen) == len(SESSIONS)


def test_it_ends_at_once_in_the_middle_of_a_session(made, slow, indexer):
    index = indexer(made.analysis.sessions, made.analysis.look, lambda: False)
    index.ask(made.access.repository(""))
    index.start()
    assert slow.waits.wait(HANG_S)
    assert not index.wait(0)
    assert index.stop(HANG_S)
    index.start()
    assert index.stop(0)
