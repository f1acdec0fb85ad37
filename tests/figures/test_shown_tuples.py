"""Tuples in answers, and the views that say what the verbs print."""

import copy
import re

import pytest
from click.testing import CliRunner
from tests.each_row import each_row
from tests.figures.profiles import profile_of
from tests.figures.test_notebook import read
from tests.memory.records import alloc, free
from tests.shared import DATA, shared
from tests.waiting import HANG_S

import peakline
from peakline.answers import Check, Checks, Fits, Several
from peakline.cli.main import app

LONG = "<script>alert(1)</script>" * 400
SAMPLES = [
    DATA / "oom_report" / "tf_bfc_oom.log.gz",
    DATA / "fit" / "torch" / "limited" / "snapshot_oom.pickle.gz",
    DATA / "memory_log" / "session_default_allocator.log.gz",
    DATA / "programs" / "leak_list.xplane.pb.gz",
    DATA / "sessions" / "jax_cpu",
    DATA / "xla_dump",
]


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    monkeypatch.setattr("peakline.render.notebook._SECONDS", HANG_S)


def bare(text):
    return re.sub(r"\s+", "", text).lower()


def facts_of(output):
    """The lines of a verb's answer, but for what names the file and what counts what is left."""
    lines = [line.strip() for line in output.splitlines()]
    facts = [line for line in lines if line and not line.startswith(("peakline: ", "and "))]
    return [line for line in facts if not line.startswith((str(DATA), "every program"))]


@each_row("path", SAMPLES)
@each_row("verb", ["memory", "fit"])
def test_the_view_says_what_the_verb_prints(path, verb, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    run = CliRunner().invoke(app, [verb, str(path)])
    profile = shared(path)
    text = bare(read((profile.memory() if verb == "memory" else profile.fit())._repr_html_()))
    lines = facts_of(run.output)
    assert lines
    missing = [line for line in lines if bare(line) not in text]
    # A notebook has eight rows of a table, and eight programs.
    left = {"memory": r"-?[\d.]+ (B|KiB|MiB) ", "fit": r"jit_|needs |live at most |replay "}
    assert [line for line in missing if not re.match(left[verb], line)] == []
    assert len(missing) < len(lines)
    assert not missing or verb == "memory" or path.name == "jax_cpu"


def test_shares_are_the_same_however_many_rows_are_shown():
    from peakline.document.live import live_rows, live_table

    answer = shared(SAMPLES[2]).memory()
    rows = live_rows(answer.allocators[0].peak_buffers, answer.labels)
    long, short = live_table(rows, ""), live_table(rows, "", 8)
    place = [column.label for column in long.columns].index("share")
    assert [row[place] for row in short.rows] == [row[place] for row in long.rows[:8]]
    shares = [*(row[place] for row in short.rows), short.rest[place]]
    assert sum(float(str(share).rstrip("%")) for share in shares) == pytest.approx(100)


@each_row("path", SAMPLES)
def test_tuples_in_answers_print_in_a_line_and_have_rows(path):
    profile = shared(path)
    answer = profile.memory()
    for result in (
        *(answer.findings, answer.allocators, answer.notices, answer.fits),
        *(profile.time().findings, profile.findings().priorities),
        *(profile.fit(), profile.fit().failed, profile.check(max_peak_bytes=1, max_idle=0.5)),
        *(peak.peak_buffers for peak in answer.allocators),
    ):
        assert isinstance(result, Several)
        assert isinstance(result, tuple)
        assert len(repr(result)) <= 120
        assert result.to_arrow().num_rows == len(result)
        assert len(result._repr_html_().encode()) <= 60_000
        read(result._repr_html_())
        assert result == tuple(result)
        assert type(result[:1]) is tuple


def test_what_cannot_be_replayed_is_named():
    fits = shared(SAMPLES[0]).fit()
    assert isinstance(fits, Fits)
    assert fits == ()
    assert [one.allocator for one in fits.failed] == ["bfc_cpu_allocator_for_gpu"]
    assert "cannot be replayed: the file is of one moment" in read(fits._repr_html_())
    again = copy.deepcopy(fits)
    assert (type(again), again.failed) == (Fits, fits.failed)


def test_checks_count_what_failed():
    checks = Checks(
        Check("peak", "gpu", float(measured), 10.0, measured <= 10, "so it is")
        for measured in (5, 20)
    )
    assert repr(checks) == "<Checks 1 of 2 failed: peak of gpu: 20 B, at most 10 B>"
    assert repr(Checks(checks[:1])) == "<Checks 1 passed>"
    assert repr(Checks()) == "<Checks 0 passed>"


def test_an_answer_shows_less_when_its_profile_is_closed():
    with peakline.open(SAMPLES[3]) as profile:
        answer = profile.memory()
        whole = read(answer._repr_html_())
    rest = read(answer._repr_html_())
    assert "error: " not in rest
    assert "Near the peak" in whole
    assert "Near the peak" not in rest
    assert "Live at the peak" in rest


ODD = {
    "empty": ([], ""),
    "only_frees": ([free(1), free(2)], ""),
    "many": ([alloc(k, k + 1, op="op", allocator=f"allocator {k}") for k in range(1000)], ""),
    "long": ([alloc(1, 5, op=LONG, allocator=LONG, shape=LONG), alloc(2, 2**40, op=LONG)], LONG),
}


@each_row("name", [*ODD])
def test_odd_profiles_show_small(name):
    rows, host = ODD[name]
    profile = profile_of(rows, host=host)
    answer = profile.memory()
    shown = [profile, answer, answer.allocators, answer.findings, profile.time(), profile.fit()]
    shown += [profile.check(max_peak_bytes=1, max_idle=0.1), profile.findings(), profile.steps()]
    for value in shown:
        html = value._repr_html_()
        text = read(html)
        assert len(html.encode()) <= 60_000
        assert "<script" not in html
        assert "error: " not in text.lower()
        assert len(repr(value)) <= 120
    if name == "many":
        assert "and 251 more allocators" in read(answer._repr_html_())


def test_dir_has_no_private_names():
    profile = shared(SAMPLES[3])
    for value in (profile, profile.memory(), profile.fit(), profile.findings(), profile.time()):
        names = dir(value)
        assert [one for one in names if one.startswith("_") and not one.endswith("__")] == []
        assert [one for one in names if not hasattr(value, one)] == []
    assert {"allocators", "findings", "to_pandas"} <= {*dir(profile.memory())}
