"""What every face asks: one host or all, remembered answers, notes, remote callers, threads."""

import mmap
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA, EndingAt, session_of
from tests.waiting import HANG_S

import peakline
from peakline.deadline import Deadline, within
from peakline.engine import Engine
from peakline.errors import (
    CheckFailed,
    DamagedError,
    DeadlineError,
    ForbiddenError,
    InputError,
    NotFoundError,
    UsageError,
)
from peakline.formats.common import files
from peakline.formats.xplane import line_reader
from peakline.kernels.line_layout import ODD
from peakline.tools import run_tool

SESSIONS = DATA / "sessions"
MULTIHOST = SESSIONS / "tf2_multihost/plugins/profile/2026_11_20_17_33_46"
ONE = MULTIHOST / "localhost_47507.xplane.pb"
OTHER = MULTIHOST / "localhost_56665.xplane.pb"
RUN = DATA / "run_metadata/tf1_grpc.pb.gz"
CNN = SESSIONS / "tf2_two_devices/plugins/profile/2026_11_20_17_20_26/vm.xplane.pb.gz"


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def two(tmp_path):
    """A session of two hosts with real profiles."""
    return session_of(tmp_path / "two", {"a.xplane.pb": ONE, "b_1.xplane.pb": OTHER})


@pytest.fixture
def run(tmp_path):
    """A session of one host whose file is a RunMetadata."""
    return session_of(tmp_path / "run", {"r.profile": RUN})


def fresh(path, name, parameters=None, fmt=None):
    with peakline.open(path) as profile:
        return run_tool(profile, name, parameters, fmt).content, tuple(profile.warnings)


def broken(path) -> None:
    """Damage a file so that nothing of it is left."""
    with open(path, "wb") as file:  # noqa: PTH123 (a path as the session gives it)
        file.write(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" * 9)


class TestOneHost:
    @each_row("host", ["b_1", "b:1"])
    @each_row("format", [None, "json", "proto"])
    def test_it_answers_as_the_profile_alone(self, engine, two, host, format):  # noqa: A002
        answer = engine.tool(two, "memory_profile", host=host, format=format)
        assert (answer.content, answer.warnings) == fresh(OTHER, "memory_profile", fmt=format)
        assert (answer.format, answer.notes) == (format or "json", ())

    def test_the_only_host_needs_no_name(self, engine, run):
        assert engine.tool(run, "graph").content == fresh(RUN, "graph")[0]

    def test_a_tool_that_shows_one_host_says_which_there_are(self, engine, two):
        with pytest.raises(UsageError, match=r"trace_viewer shows one host; there is: a, b_1"):
            engine.tool(two, "trace_viewer")
        answer = engine.tool(two, "trace_viewer", host="a", parameters={"show_args": "false"})
        assert answer.content == fresh(ONE, "trace_viewer", {"show_args": False})[0]

    def test_the_parameter_host_means_the_same(self, engine, two):
        answer = engine.tool(two, "memory_profile", parameters={"host": "b:1"})
        assert answer.content == fresh(OTHER, "memory_profile")[0]

    @each_row(
        ("name", "given", "error", "message"),
        [
            ("nope", {}, NotFoundError, "no tool 'nope'"),
            ("memory_profile", {"host": "c"}, NotFoundError, "no host 'c'; there is: a, b_1"),
            ("memory_profile", {"format": "xml"}, UsageError, "no format 'xml'"),
            ("memory_profile", {"parameters": {"version": "9"}}, UsageError, "parameter version"),
            ("memory_profile", {"parameters": {"x": "1"}}, UsageError, "no parameter 'x'"),
            ("memory_profile", {"host": "a", "parameters": {"memory_id": "m"}}, NotFoundError,
             "no memory 'm'"),
        ],
    )  # fmt: skip
    def test_errors(self, engine, two, name, given, error, message):
        with pytest.raises(error, match=message):
            engine.tool(two, name, **given)

    def test_a_session_that_lost_its_profiles(self, engine, run):
        for host in run.hosts():
            os.unlink(host.path)  # noqa: PTH108 (a path as the session gives it)
        with pytest.raises(NotFoundError, match="no profile in it"):
            engine.tool(run, "graph")


def test_the_answer_is_the_same_where_the_memory_of_what_was_read_is_given_back(
    engine, two, monkeypatch
):
    right = fresh(ONE, "memory_profile")[0]
    given_back = []

    class Map(mmap.mmap):
        def madvise(self, *words):
            given_back.append(words)
            super().madvise(*words)

    # What the events' decoder does not expect is read where the file is mapped.
    monkeypatch.setattr(line_reader, "decode", lambda *_: ODD)
    monkeypatch.setattr(files, "_HEAD_BYTES", 4096)
    monkeypatch.setattr(files, "_MOST_COPIED", 0)
    monkeypatch.setattr(files, "_RELEASE_BYTES", mmap.PAGESIZE)
    monkeypatch.setattr(files.mmap, "mmap", Map)
    assert engine.tool(two, "memory_profile", host="a").content == right
    assert given_back
    assert {words[0] for words in given_back} == {mmap.MADV_DONTNEED}


class TestRemote:
    def test_unknown_parameters_are_noted(self, engine, run):
        answer = engine.tool(run, "graph", parameters={"tqx": "x", "depth": "2"}, remote=True)
        assert answer.notes == ("parameter 'tqx' is not known to graph and was ignored",)
        assert answer.content == fresh(RUN, "graph", {"depth": 2})[0]
        # The same question, remembered: the note belongs to the asker.
        assert engine.tool(run, "graph", parameters={"depth": 2}).notes == ()

    def test_no_file_is_named(self, engine, run):
        given = {"graph": str(DATA / "op_stats/tf1_grpc.graph.pb.gz")}
        with pytest.raises(ForbiddenError, match="op_stats: parameter graph is for local callers"):
            engine.tool(run, "op_stats", parameters=given, remote=True)
        local = engine.tool(run, "op_stats", parameters=given)
        assert local.content == fresh(RUN, "op_stats", given)[0]
        assert engine.tool(run, "op_stats").content == fresh(RUN, "op_stats")[0] != local.content


class TestRemembered:
    def test_an_answer_is_made_once(self, engine, two):
        first = engine.tool(two, "memory_profile", host="a", parameters={"version": "1"})
        misses = engine.cache.stats()
        again = engine.tool(two, "memory_profile", host="a", parameters={"version": 1})
        assert again.content is first.content
        assert engine.cache.stats() == misses

    def test_other_parameters_are_another_answer(self, engine, two):
        one = engine.tool(two, "memory_profile", host="a", parameters={"max_snapshots": 5})
        other = engine.tool(two, "memory_profile", host="a", parameters={"max_snapshots": 6})
        assert one.content != other.content

    def test_a_changed_file_gets_a_new_answer(self, engine, two):
        before = engine.tool(two, "memory_profile", host="a")
        path = two.host("a").path
        with open(path + ".new", "wb") as file:  # noqa: PTH123
            file.write(OTHER.read_bytes())
        os.replace(path + ".new", path)  # noqa: PTH105
        after = engine.tool(two, "memory_profile", host="a")
        assert after.content == fresh(OTHER, "memory_profile")[0] != before.content

    def test_no_more_than_fit(self, two):
        engine = Engine(answers_bytes=10)
        first = engine.tool(two, "memory_profile", host="a")
        assert engine.tool(two, "memory_profile", host="a").content is not first.content
        assert engine._answers.nbytes == 0

    def test_warnings_of_a_tool_are_not_added_up(self, engine, tmp_path):
        session = session_of(tmp_path / "log", {"g.profile": DATA / "text/graph.pbtxt.gz"})
        for snapshots in (1, 2, 3):
            answer = engine.tool(session, "memory_profile", parameters={"max_snapshots": snapshots})
            assert [(w.kind, w.count) for w in answer.warnings] == [("no_memory_events", 1)]


class TestAllHosts:
    def test_one_host_that_fails_is_a_note(self, engine, two):
        broken(two.host("b_1").path)
        answer = engine.tool(two, "memory_profile", format="proto")
        (note,) = answer.notes
        assert note.startswith("host b_1: ")
        whole = message_of(answer.content)
        assert whole.num_hosts == 1
        assert list(whole.memory_ids) == [
            f"a/{name}"
            for name in message_of(fresh(ONE, "memory_profile", fmt="proto")[0]).memory_ids
        ]
        # Not remembered: the file may be whole the next time.
        with open(two.host("b_1").path, "wb") as file:  # noqa: PTH123
            file.write(OTHER.read_bytes())
        assert engine.tool(two, "memory_profile", format="proto").notes == ()

    def test_when_all_fail_it_is_an_error(self, engine, two):
        for host in two.hosts():
            broken(host.path)
        with pytest.raises(InputError):
            engine.tool(two, "memory_profile")

    def test_a_parameter_that_no_host_has_is_an_error(self, engine, two):
        with pytest.raises(NotFoundError, match="no memory 'm'"):
            engine.tool(two, "memory_profile", parameters={"memory_id": "m"})

    @pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.soak)])
    def test_it_ends_at_the_deadline_wherever_it_is(self, engine, two, every):
        right = engine.tool(two, "memory_profile", format="proto").content
        for look in range(1, 300, every):
            anew = Engine()
            try:
                with within(EndingAt(look)):
                    assert anew.tool(two, "memory_profile", format="proto").content == right
                break
            except DeadlineError:
                answer = anew.tool(two, "memory_profile", format="proto")
                assert (answer.content, answer.notes) == (right, ())
        assert look > 5


def message_of(content):
    from peakline.schema import MemoryProfile

    return MemoryProfile.FromString(content)


class TestSql:
    def test_over_one_host(self, engine, two):
        with peakline.open(ONE) as profile:
            right = profile.sql("select count(*) n from events").to_pylist()
        assert engine.sql(two, "select count(*) n from events", host="a").to_pylist() == right
        assert "allocator_events" in engine.tables(two, host="a")

    def test_several_hosts_are_ranks(self, engine, two):
        rows = engine.sql(two, "select rank, host from ranks").to_pylist()
        assert rows == [{"rank": 0, "host": "a"}, {"rank": 1, "host": "b_1"}]
        assert engine.tables(two) == sorted({"ranks", *engine.tables(two, host="a")})

    def test_a_refused_query_and_one_without_memory(self, engine, two):
        with pytest.raises(CheckFailed):
            engine.sql(two, "select nope from events", host="a")
        many = "select distinct a.name, b.event_id, random() from events a, events b"
        query = f"select count(*) from ({many})"  # noqa: S608 (the test itself)
        with pytest.raises(CheckFailed, match=r"(?i)memory"):
            engine.sql(two, query, host="a", memory_limit_bytes=32 << 20)
        assert engine.sql(two, "select 1 one", host="a").to_pylist() == [{"one": 1}]

    def test_the_answer_outlives_the_profile(self, two):
        engine = Engine(cache_bytes=0)
        table = engine.sql(two, "select name, event_id from events order by 2", host="a")
        assert engine.cache.stats().profiles == 0
        with peakline.open(ONE) as profile:
            assert table.equals(profile.sql("select name, event_id from events order by 2"))


QUERY = "select line_id, count(*) n, sum(duration_ps) d from events group by 1 order by 1"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    place = tmp_path_factory.mktemp("sessions")
    two = {"a.xplane.pb": ONE, "b_1.xplane.pb": OTHER}
    return {
        "two": session_of(place / "two", two),
        "run": session_of(place / "run", {"r.profile": RUN}),
        "cnn": session_of(place / "cnn", {"vm.xplane.pb.gz": CNN}),
    }


@pytest.fixture(scope="module")
def right(places):
    """What an engine of its own answers each question."""
    return [ask(Engine(), places[name]) for name, ask in questions()]


def questions():
    """Session and what to ask an engine of it."""
    for host in ("a", "b_1", ""):
        for fmt in ("json", "proto"):
            yield ("two", lambda e, s, h=host, f=fmt: e.tool(s, "memory_profile", host=h, format=f))
    yield "two", lambda e, s: e.tool(s, "trace_viewer", host="a")
    yield "two", lambda e, s: e.sql(s, QUERY, host="a").to_pylist()
    yield "two", lambda e, s: e.sql(s, QUERY, host="b_1").to_pylist()
    yield "two", lambda e, s: e.tools(s)
    yield "cnn", lambda e, s: e.tool(s, "memory_profile")
    yield "cnn", lambda e, s: e.sql(s, QUERY).to_pylist()
    yield "cnn", lambda e, s: e.tables(s)
    yield "run", lambda e, s: e.tool(s, "op_stats", parameters={"view": "op"})
    yield "run", lambda e, s: e.tool(s, "trace_viewer")
    yield "run", lambda e, s: e.tool(s, "graph")
    yield "run", lambda e, s: e.tools(s)


class TestThreads:
    @pytest.mark.parametrize("threads", [4, pytest.param(16, marks=pytest.mark.soak)])
    @pytest.mark.parametrize(
        ("cache_bytes", "answers_bytes"), [(1 << 20, 0), (1 << 30, 0), (1 << 30, 1 << 28)]
    )
    def test_many_threads_get_what_one_gets(
        self, places, right, cache_bytes, answers_bytes, threads
    ):
        request = list(questions())
        engine = Engine(cache_bytes=cache_bytes, answers_bytes=answers_bytes)
        start = threading.Barrier(threads)

        def work(seed: int) -> None:
            order = list(range(len(request)))
            random.Random(seed).shuffle(order)
            start.wait(HANG_S)
            for number in order:
                name, ask = request[number]
                with within(Deadline(HANG_S)):
                    got = ask(engine, places[name])
                if hasattr(got, "content"):
                    assert got.content == right[number].content, number
                    assert got.notes == right[number].notes
                    # Reads of others may have found more than this one needs.
                    assert set(right[number].warnings) <= set(got.warnings)
                else:
                    assert got == right[number], number

        with ThreadPoolExecutor(threads) as pool:
            for future in [pool.submit(work, seed) for seed in range(threads)]:
                future.result(HANG_S)
        stats = engine.cache.stats()
        if cache_bytes == 1 << 30:
            assert (stats.misses, stats.evictions, stats.profiles) == (4, 0, 4)
        else:
            assert stats.evictions > 0
            assert stats.bytes <= cache_bytes

    def test_each_table_is_decoded_once(self, two, monkeypatch):
        from peakline.formats.xplane.reader import XPlaneReader

        read, reads, lock = XPlaneReader.read, [], threading.Lock()

        def counting(self, table, warnings, columns=None):
            with lock:
                reads.append((self.path, table))
            return read(self, table, warnings, columns)

        monkeypatch.setattr(XPlaneReader, "read", counting)
        engine = Engine(answers_bytes=0)

        def ask(number: int) -> None:
            engine.tool(two, "memory_profile", parameters={"max_snapshots": 10 + number})

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(8)))
        assert len(reads) == len(set(reads)) == 4


def test_damage_is_an_error_with_its_place(engine, two):
    broken(two.host("a").path)
    with pytest.raises((DamagedError, InputError)):
        engine.tool(two, "memory_profile", host="a")
