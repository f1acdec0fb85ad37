"""A question that is ended anywhere leaves the shared profile as if it had not been asked."""

import pytest
from tests.engine.ending import DATA, EndingAt
from tests.waiting import HANG_S

import peakline
from peakline.deadline import Deadline, within
from peakline.errors import DeadlineError
from peakline.tools import run_tool

SESSIONS = DATA / "sessions"
XSPACE = SESSIONS / "tf2_multihost/plugins/profile/2026_11_20_17_33_46/localhost_47507.xplane.pb"
FILES = {
    "xplane": XSPACE,
    "cut xplane": XSPACE,
    "run_metadata": DATA / "run_metadata/tf1_grpc.pb.gz",
    "graph_def": DATA / "text/graph.pbtxt.gz",
    "memory_log": DATA / "memory_log/eager_default_allocator.log.gz",
    "oom_report": DATA / "oom_report/tf_bfc_oom.log.gz",
    "pprof": DATA / "pprof/device_memory.pprof.pb.gz",
    "chrome_trace": DATA / "chrome_trace/noleak.pt.trace.json.gz",
}
FRESH = [
    ("xplane", "memory_profile"),
    ("cut xplane", "memory_profile"),
    ("cut xplane", "module_runs"),
    ("run_metadata", "op_stats"),
    ("memory_log", "buffers"),
    ("chrome_trace", "memory_profile"),
]
SHARED = [
    ("xplane", "trace_viewer"),
    ("xplane", "sql"),
    ("xplane", "has events"),
    ("run_metadata", "trace_viewer"),
    ("run_metadata", "graph"),
    ("graph_def", "op_stats"),
    ("memory_log", "memory_profile"),
    ("oom_report", "memory_profile"),
    ("pprof", "memory_profile"),
    ("chrome_trace", "trace_viewer"),
]
FORMATS = {"memory_profile": "proto"}
MOST_LOOKS = 500


def ask(profile, question):
    """The answer and the warnings that belong to it."""
    with profile.question() as warnings:
        if question == "sql":
            table = next(name for name in profile.tables if name != "warnings")
            answer = profile.sql(f"select count(*) n from {table}").to_pylist()  # noqa: S608 (ours)
        elif question.startswith("has "):
            answer = profile.has_rows(question[4:])
        elif question in profile.tables:
            answer = profile.columns(question).to_pylist()
        else:
            answer = run_tool(profile, question, format=FORMATS.get(question)).content
        return answer, warnings()


@pytest.fixture
def path(request, tmp_path):
    if not request.param.startswith("cut"):
        return FILES[request.param]
    # In the middle: a file with warnings of its own, which must be counted once.
    content = FILES[request.param].read_bytes()
    cut = tmp_path / "cut.xplane.pb"
    cut.write_bytes(content[: len(content) * 2 // 3])
    return cut


every = pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.soak)])
"""Ended at the first look and at each third one after it; in the soak at all of them."""


@every
@pytest.mark.parametrize(("path", "question"), FRESH, indirect=["path"])
def test_ended_at_every_look_and_asked_again(path, question, every):
    with peakline.open(path) as profile:
        right = ask(profile, question)
    for look in range(1, MOST_LOOKS, every):
        with peakline.open(path) as profile:
            try:
                with within(EndingAt(look)):
                    answer = ask(profile, question)
            except DeadlineError:
                assert ask(profile, question) == right, look
            else:
                assert answer == right
                break
    assert 1 < look < MOST_LOOKS - every


@every
@pytest.mark.parametrize(("path", "question"), SHARED, indirect=["path"])
def test_ended_at_one_look_after_the_other(path, question, every):
    """One profile, which keeps what the ended questions got so far."""
    with peakline.open(path) as profile:
        right = ask(profile, question)
    with peakline.open(path) as profile:
        for look in range(1, MOST_LOOKS, every):
            try:
                with within(EndingAt(look)):
                    answer = ask(profile, question)
                break
            except DeadlineError:
                continue
        assert answer == right
        assert 1 < look < MOST_LOOKS - every


class TestSql:
    ENDLESS = "select count(*) from events a, events b, events c where a.name < b.name || c.name"

    def test_a_query_is_interrupted_and_the_profile_answers_on(self):
        with peakline.open(XSPACE) as profile:
            for _ in range(2):
                with within(Deadline(0.1)), pytest.raises(DeadlineError):
                    profile.sql(self.ENDLESS)
                assert profile.sql("select count(*) n from planes").to_pylist()[0]["n"] > 0

    def test_cancelled_from_another_thread(self):
        import threading

        from peakline.errors import CancelledError

        with peakline.open(XSPACE) as profile, within(Deadline()) as deadline:
            threading.Timer(0.1, deadline.cancel).start()
            with pytest.raises(CancelledError):
                profile.sql(self.ENDLESS)

    def test_a_long_query_keeps_nobody_from_the_tables(self):
        import threading

        with peakline.open(XSPACE) as profile:
            running = Deadline()
            errors = []

            def query() -> None:
                try:
                    with within(running):
                        profile.sql(self.ENDLESS)
                except peakline.PeaklineError as error:
                    errors.append(error)

            thread = threading.Thread(target=query)
            thread.start()
            with within(Deadline(HANG_S)):
                assert profile.columns("steps").rows >= 0
                assert thread.is_alive()
            running.cancel()
            thread.join(HANG_S)
            assert [type(error).__name__ for error in errors] == ["CancelledError"]
