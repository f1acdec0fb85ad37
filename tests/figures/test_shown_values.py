"""Whatever the sample: every value of the public interface prints in one short line, and its HTML
is small and well formed.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import pytest
from tests.each_row import each_row
from tests.figures.test_figures import SAMPLES
from tests.figures.test_notebook import read
from tests.shared import DATA, shared
from tests.sweeps import each_sample
from tests.waiting import HANG_S

import peakline
from peakline.errors import PeaklineError, UsageError

MOST_CHARACTERS, MOST_BYTES = 120, 60_000
SEVERAL = [
    *SAMPLES,
    *sorted((DATA / "programs").glob("*.gz")),
    *sorted((DATA / "hlo").iterdir())[:6],
    *(path for path in (DATA / "xla_dump").iterdir() if path.is_dir()),
]


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    monkeypatch.setattr("peakline.render.notebook._SECONDS", HANG_S)


def values_of(profile):
    yield profile
    yield from (profile.memory(), profile.time(), profile.steps(), profile.findings())
    yield from (profile.critical_path(), profile.launches())
    yield from profile.findings()
    yield from profile.fit()
    yield from profile.check(max_peak_bytes=1, max_program_peak_bytes=1)


def long_ones(value, where, depth=4, seen=None):
    """Where below a value something prints long."""
    seen = set() if seen is None else seen
    if id(value) in seen or depth < 0:
        return
    seen.add(id(value))
    if type(value).__module__.startswith("peakline"):
        text = repr(value)
        if len(text) > MOST_CHARACTERS or not text.isprintable():
            yield f"{where}: {type(value).__name__} prints {len(text)} characters"
    parts = []
    if is_dataclass(value):
        parts = [(field.name, getattr(value, field.name, None)) for field in fields(value)]
    elif isinstance(value, Mapping) and not type(value).__module__.startswith("peakline"):
        parts = list(value.items())[:4]
    elif isinstance(value, tuple | list):
        parts = [*enumerate(value[:4])]
    for name, part in parts:
        yield from long_ones(part, f"{where}.{name}", depth - 1, seen)


@each_sample("path", SEVERAL)
def test_every_value_prints_short_and_shows_small(path):
    try:
        profile = shared(path)
    except PeaklineError:
        pytest.skip("no profile")
    for value in values_of(profile):
        kind = type(value).__name__
        assert list(long_ones(value, kind)) == []
        if value is not None:
            html = value._repr_html_()
            assert len(html.encode()) <= MOST_BYTES, kind
            assert "error: " not in read(html).replace("error: bfc", "")[:200], kind


def test_a_comparison_prints_short_and_shows_small():
    one, other = (shared(path) for path in SAMPLES[-2:])
    result = peakline.diff(one, other)
    assert list(long_ones(result, "diff")) == []
    assert "before: " in read(result._repr_html_())
    rows = result.to_arrow().to_pylist()
    assert {row["unit"] for row in rows} <= {"bytes", "ps"}
    assert all(row["delta"] == row["after"] - row["before"] for row in rows)
    deltas = sum(row["delta"] for row in rows if row["about"] == "peak")
    assert deltas == sum(one.peak_delta_bytes for one in result.memory.allocators)


def test_the_repr_of_a_profile_reads_nothing_and_says_what_is_known(monkeypatch):
    with peakline.open(DATA / "sessions" / "tf2_cnn") as profile:
        with monkeypatch.context() as patched:
            patched.setattr(profile._reader, "read", None)
            assert repr(profile) == "<Profile vm.xplane.pb.gz: xplane, host vm, 34 tables>"
        profile.memory()
        assert "peak 73.0 MiB of bfc_cpu_allocator_for_gpu" in repr(profile)
        profile.time()
        assert repr(profile).startswith("<Profile vm.xplane.pb.gz: 16 steps of 11.740 ms (median)")
    assert repr(profile) == "<Profile vm.xplane.pb.gz: closed>"


def test_a_log_directory_and_its_sessions():
    repository = peakline.Repository(DATA / "sessions" / "tf2_multihost")
    session = repository.sessions()[0]
    assert "1 session" in read(repository._repr_html_())
    assert all(host in read(session._repr_html_()) for host in session.hosts)
    assert len(repr(session)) <= MOST_CHARACTERS
    assert "error: " in read(peakline.Repository("nowhere")._repr_html_())


@each_row("tool", ["framework_op_stats", "memory_profile", "live_memory", "graph", "trace_viewer"])
def test_answers_of_tools_show_their_table_or_their_begin(tool):
    answer = shared(DATA / "sessions" / "tf2_cnn").tool(tool)
    assert repr(answer).startswith("<ToolResult json, ")
    text = read(answer._repr_html_())
    assert "to_pandas()" in text or "it begins" in text
    assert answer.json() is not None


def test_an_answer_without_a_table_says_so():
    answer = shared(DATA / "sessions" / "tf2_cnn").tool("memory_profile", format="proto")
    with pytest.raises(UsageError, match="no table; request format='json'"):
        answer.to_arrow()
    with pytest.raises(UsageError, match="proto, not json"):
        answer.json()
    read(answer._repr_html_())
