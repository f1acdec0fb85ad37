"""Which tools a session has: over all hosts, read as little as possible, noticed when changed."""

import gzip
import shutil
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.engine.ending import DATA, EndingAt, session_of
from tests.reference.xspace_builder import SpaceBuilder
from tests.tool_lists import ALLOCATOR_TOOLS, JAX_TOOLS, PROGRAM_TOOLS, XSPACE_TOOLS, tools_for

from peakline.deadline import within
from peakline.engine import Engine, tool_index
from peakline.errors import DeadlineError, NotFoundError
from peakline.formats.xplane.presence import may_have_gpus
from peakline.formats.xplane.reader import XPlaneReader
from peakline.repository import Repository

SESSIONS = DATA / "sessions"
MULTIHOST = SESSIONS / "tf2_multihost/plugins/profile/2026_11_20_17_33_46"
WITH_MEMORY = MULTIHOST / "localhost_47507.xplane.pb"
WITHOUT_MEMORY = SESSIONS / "jax_cpu/plugins/profile/2026_11_20_17_20_28/vm.xplane.pb.gz"
BOTH = sorted([*XSPACE_TOOLS, *PROGRAM_TOOLS])
RUN = DATA / "run_metadata/tf1_grpc.pb.gz"
GRAPH = DATA / "text/graph.pbtxt.gz"


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def opened(monkeypatch):
    """The files that were opened, in order."""
    paths = []
    create = XPlaneReader.__init__

    def noting(self, file, form="xplane"):
        paths.append(file.path.rpartition("/")[2])
        create(self, file, form)

    monkeypatch.setattr(XPlaneReader, "__init__", noting)
    return paths


class Clock:
    """Time that goes on when it is told to."""

    def __init__(self, monkeypatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(tool_index.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    # A directory that has been as it is for a long time.
    monkeypatch.setattr(tool_index, "_is_settled", lambda _: True)
    return Clock(monkeypatch)


def test_one_file_decides_where_it_has_everything(engine, tmp_path, opened):
    files = {f"{name}.xplane.pb": WITH_MEMORY for name in "abcdefgh"}
    assert engine.tools(session_of(tmp_path, files)) == XSPACE_TOOLS
    assert opened == ["a.xplane.pb"]


def test_all_hosts_count_not_the_first(engine, tmp_path, opened):
    files = {"a.xplane.pb.gz": WITHOUT_MEMORY, "b.xplane.pb": WITH_MEMORY}
    files |= {"c.xplane.pb": WITH_MEMORY}
    assert engine.tools(session_of(tmp_path, files)) == BOTH
    assert opened == ["a.xplane.pb.gz", "b.xplane.pb"]


def test_hosts_without_memory_events_are_not_opened(engine, tmp_path, opened):
    plain = tmp_path / "plain"
    plain.write_bytes(gzip.decompress(WITHOUT_MEMORY.read_bytes()))
    files = {f"{name}.xplane.pb": plain for name in "abcdefgh"}
    assert engine.tools(session_of(tmp_path, files)) == JAX_TOOLS
    assert opened == ["a.xplane.pb"]


def test_tools_that_no_host_has(engine, tmp_path):
    assert engine.tools(session_of(tmp_path, {"a.xplane.pb.gz": WITHOUT_MEMORY})) == JAX_TOOLS


@pytest.mark.parametrize(
    ("source", "tools"),
    [
        (RUN, sorted({*ALLOCATOR_TOOLS, *tools_for("nodes", "op_runs", "op_times"), "op_stats"})),
        (GRAPH, ["graph", "graph_scopes", "headline", "op_stats"]),
        (DATA / "memory_log/eager_default_allocator.log.gz", ALLOCATOR_TOOLS),
        (DATA / "chrome_trace/noleak.pt.trace.json.gz", XSPACE_TOOLS),
        (DATA / "pprof/device_memory.pprof.pb.gz", ALLOCATOR_TOOLS),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_other_formats(engine, tmp_path, source, tools):
    assert engine.tools(session_of(tmp_path, {"a.profile": source})) == tools


def test_formats_add_up(engine, tmp_path):
    session = session_of(tmp_path, {"a.profile": GRAPH, "b.xplane.pb": WITH_MEMORY})
    assert engine.tools(session) == sorted([*XSPACE_TOOLS, "graph", "graph_scopes", "op_stats"])


def test_a_name_may_be_wrong_about_the_format(engine, tmp_path):
    assert engine.tools(session_of(tmp_path, {"a.xplane.pb": GRAPH})) == [
        "graph",
        "graph_scopes",
        "headline",
        "op_stats",
    ]


def test_a_host_that_cannot_be_read_has_none(engine, tmp_path):
    text = tmp_path / "text"
    text.write_text("nothing")
    session = session_of(tmp_path / "x", {"a.xplane.pb": text, "b.xplane.pb.gz": WITHOUT_MEMORY})
    assert engine.tools(session) == JAX_TOOLS
    session = session_of(tmp_path / "y", {"a.xplane.pb": text})
    assert engine.tools(session) == []


def test_it_remembers(engine, tmp_path, opened, clock):
    session = session_of(tmp_path, {"a.xplane.pb": WITH_MEMORY})
    for _ in range(3):
        assert engine.tools(session) == XSPACE_TOOLS
    assert len(opened) == 1
    clock.now += 61
    assert engine.tools(session) == XSPACE_TOOLS
    assert len(opened) == 1


def test_a_new_host_is_noticed_at_once(engine, tmp_path, opened, clock):  # noqa: ARG001
    session = session_of(tmp_path, {"a.xplane.pb.gz": WITHOUT_MEMORY})
    assert engine.tools(session) == JAX_TOOLS
    shutil.copyfile(WITH_MEMORY, f"{session.path}/b.xplane.pb")
    assert engine.tools(session) == BOTH
    assert opened == ["a.xplane.pb.gz", "b.xplane.pb"]


def test_a_file_that_changed_in_place_is_noticed_within_a_minute(engine, tmp_path, clock):
    session = session_of(tmp_path, {"a.xplane.pb.gz": WITHOUT_MEMORY})
    assert engine.tools(session) == JAX_TOOLS
    with open(f"{session.path}/a.xplane.pb.gz", "wb") as file:  # noqa: PTH123
        file.write(WITH_MEMORY.read_bytes())
    assert engine.tools(session) == JAX_TOOLS
    clock.now += 61
    assert engine.tools(session) == XSPACE_TOOLS


def test_a_directory_that_changed_a_moment_ago_is_looked_at_again(
    engine, tmp_path, monkeypatch, opened
):
    clock = Clock(monkeypatch)
    session = session_of(tmp_path, {"a.xplane.pb.gz": WITHOUT_MEMORY})
    assert engine.tools(session) == JAX_TOOLS
    shutil.copyfile(WITH_MEMORY, f"{session.path}/b.xplane.pb")
    # As on a file system whose clock has not moved on.
    monkeypatch.setattr(type(session), "stamp", lambda _: "same")
    known = engine._index._known
    known[session.path] = replace(known[session.path], stamp="same")
    assert engine.tools(session) == JAX_TOOLS
    clock.now += 3
    assert engine.tools(session) == BOTH
    assert opened == ["a.xplane.pb.gz", "b.xplane.pb"]


def test_a_session_that_is_gone(engine, tmp_path):
    session = session_of(tmp_path, {"a.xplane.pb.gz": WITHOUT_MEMORY})
    engine.tools(session)
    shutil.rmtree(session.path)
    with pytest.raises(NotFoundError):
        engine.tools(session)


def test_it_ends_at_the_deadline_and_answers_the_next_time(engine, tmp_path):
    session = session_of(tmp_path, {"a.xplane.pb.gz": WITHOUT_MEMORY, "b.xplane.pb": WITH_MEMORY})
    for look in range(1, 100):
        try:
            with within(EndingAt(look)):
                engine.tools(session)
            break
        except DeadlineError:
            continue
    assert look > 2
    assert engine.tools(session) == BOTH


def _looks_for(session):
    """How often a new engine looks at the clock until it has named the tools of a session."""
    deadline = EndingAt(2**40)
    with within(deadline):
        Engine().tools(session)
    return deadline.looks


def test_what_was_found_before_the_deadline_is_not_looked_for_again(engine, tmp_path, opened):
    alone = session_of(tmp_path / "alone", {"e.xplane.pb.gz": WITHOUT_MEMORY})
    # One host is opened with so many looks, eight are not.
    looks = _looks_for(alone) + 1
    opened.clear()
    session = session_of(tmp_path, {f"{name}.xplane.pb.gz": WITHOUT_MEMORY for name in "abcdefgh"})
    assert engine.known_tools(session) == []
    calls = 0
    while calls < 100:
        calls += 1
        before = len(opened)
        try:
            with within(EndingAt(looks)):
                tools = engine.tools(session)
        except DeadlineError:
            assert len(opened) > before
            continue
        break
    assert calls > 1
    assert tools == engine.known_tools(session) == JAX_TOOLS
    # The last of each call was ended while it was looked at.
    assert len(opened) < 8 + calls
    assert sorted(set(opened)) == [f"{name}.xplane.pb.gz" for name in "abcdefgh"]


def test_what_is_known_of_a_part_is_told(engine, tmp_path):
    alone = session_of(tmp_path / "alone", {"a.xplane.pb.gz": WITHOUT_MEMORY})
    session = session_of(tmp_path, {"a.xplane.pb.gz": WITHOUT_MEMORY, "b.profile": GRAPH})
    looks = _looks_for(alone)
    for look in range(looks, looks + 20):
        with within(EndingAt(look)), suppress(DeadlineError):
            engine.tools(session)
        if engine.known_tools(session):
            break
    assert engine.known_tools(session) == JAX_TOOLS
    assert engine.tools(session) == sorted({*JAX_TOOLS, "graph", "graph_scopes", "op_stats"})


def test_profiles_in_use_are_not_pushed_out(tmp_path):
    engine = Engine()
    sessions = [
        session_of(tmp_path, {"a.xplane.pb": WITH_MEMORY}, f"s{number}") for number in range(5)
    ]
    engine.tool(sessions[0], "memory_profile")
    for session in Repository(tmp_path).sessions():
        engine.tools(session)
    assert engine.cache.stats().profiles == 1


def test_kernel_stats_is_there_exactly_where_a_plane_is_that_of_a_gpu(engine, tmp_path):
    spaces = {}
    for name, plane in (("a", "/device:TPU:0"), ("b", "/device:GPU:0")):
        space = SpaceBuilder()
        space.host().line("t").event("x", 0, 5)
        space.plane(plane).line("ops").event("k", 0, 5)
        spaces[name] = tmp_path / name
        spaces[name].write_bytes(space.space.SerializeToString())
    tpus = session_of(tmp_path / "tpus", {f"{n}.xplane.pb": spaces["a"] for n in "abc"})
    assert "kernel_stats" not in engine.tools(tpus)
    # Seen without opening them.
    assert [may_have_gpus(str(spaces[name])) for name in "ab"] == [False, True]
    both = session_of(tmp_path / "both", {f"{n}.xplane.pb": spaces[n] for n in "ab"})
    assert "kernel_stats" in engine.tools(both)
