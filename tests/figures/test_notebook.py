"""What a notebook shows of a profile."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.figures.profiles import profile_of
from tests.figures.test_figures import HOSTILE, SAMPLES
from tests.memory.records import alloc, free
from tests.sweeps import each_sample
from tests.waiting import HANG_S

import peakline
from peakline.errors import DamagedError
from peakline.findings.ranking import priorities


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """How long a cell waits at most is a matter of the machine's pace, but for one test."""
    monkeypatch.setattr("peakline.render.notebook._SECONDS", HANG_S)


VOID = {"path", "ellipse"}
KNOWN = {
    "div", "em", "li", "path", "span", "strong", "svg", "table", "tbody", "td", "th", "thead",
    "tr", "ul", "ellipse",
}  # fmt: skip


class Checker(HTMLParser):
    """Takes only known elements, properly nested; keeps the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        assert tag in KNOWN, tag
        assert not any(name.startswith("on") for name, _ in attrs)
        self.links += [value for name, value in attrs if name in {"href", "src", "xlink:href"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert checker.links == []
    return "".join(checker.text)


@each_sample("path", SAMPLES)
def test_every_sample(path):
    with peakline.open(path) as profile:
        html = profile._repr_html_()
        warnings = profile.warnings
        assert profile._repr_html_() == html
        assert profile.warnings == warnings
        answer = profile.memory()
        assert len(html) < 60_000
        text = read(html)
        assert str(path) in text
        assert "error: " not in text.replace("error: bfc_cpu_allocator_for_gpu ran out", "")
        for peak in answer.allocators[:1]:
            assert peak.allocator in text
        first = priorities(answer.findings, profile.time().findings)[:8]
        assert [one.finding.title for one in first if one.finding.title not in text] == []


def test_it_reads_once_what_the_summary_needs(monkeypatch):
    path = next(path for path in SAMPLES if path.name.startswith("leak_list."))
    with peakline.open(path) as profile:
        read, request = profile._reader.read, []

        def counted(table, *args):
            request.append(table)
            return read(table, *args)

        monkeypatch.setattr(profile._reader, "read", counted)
        profile._repr_html_()
        profile._repr_html_()
    assert sorted(request) == ["allocator_events", "events", "lines", "planes", "steps"]


def test_what_it_says():
    rows = [
        alloc(1, 3 * 2**20, op="model/W", data_type="float", shape="[3,2]", allocator="gpu"),
        alloc(2, 2**20, op="model/x", allocator="gpu"),
        free(2, allocator="gpu"),
        alloc(1, 10, allocator="gpu"),
    ]
    text = read(profile_of(rows)._repr_html_())
    for part in ("fake.pb", "fake, host worker-0", "gpu", "4.0 MiB", "75.0%", "model/W"):
        assert part in text
    assert "float [3, 2]" in text
    assert "the earlier one is taken as freed" in text


def test_names_from_a_file_are_text():
    rows = [alloc(1, 5, op=HOSTILE, allocator=HOSTILE, shape=HOSTILE), alloc(2, 5, op="</div>")]
    html = profile_of([*rows, free(1)], host='"><script>alert(1)</script>')._repr_html_()
    text = read(html)
    assert "<script>alert(1)</script>" in text
    assert "<script" not in html
    assert "</div>" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(html) < 20_000


def test_a_profile_without_memory():
    text = read(profile_of([])._repr_html_())
    assert "No memory events in this profile" in text
    assert "Warnings" not in text


def test_a_closed_profile_says_so():
    profile = profile_of([alloc(1, 5)])
    profile.close()
    assert "the profile is closed" in read(profile._repr_html_())


@each_row("cut", [100, 5000, 20_000])
def test_a_damaged_file_shows_its_error(tmp_path, cut):
    import gzip

    path = Path(next(p for p in SAMPLES if p.name.startswith("leak_list.")))
    damaged = tmp_path / "host.xplane.pb"
    damaged.write_bytes(gzip.decompress(path.read_bytes())[:cut] + b"\xff" * 40)
    with peakline.open(damaged) as profile:
        text = read(profile._repr_html_())
    assert "host.xplane.pb" in text
    assert "error: " in text or "Warnings" in text


@each_row(
    ("error", "told"),
    [
        (DamagedError("fake.pb: broken at offset 7: <b>", 7), "error: fake.pb: broken at offset 7"),
        (RecursionError("too deep"), "error: RecursionError: too deep"),
        (MemoryError(), "error: MemoryError"),
    ],
)
def test_no_error_leaves_it(monkeypatch, error, told):
    profile = profile_of([alloc(1, 5)])

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(profile._reader, "read", fail)
    assert told in read(profile._repr_html_())


def test_it_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr("peakline.render.notebook._SECONDS", 0)
    text = read(profile_of([alloc(1, 5)])._repr_html_())
    assert "It takes long: profile.memory() and profile.time() do not hurry." in text


def test_what_compiled_programs_need(root):
    with peakline.open(root / "tests" / "data" / "sessions" / "jax_cpu") as profile:
        shown = profile._repr_html_()
    checker = Checker()
    checker.feed(shown)
    text = " ".join("".join(checker.text).split())
    assert "CPU:0 at least 2.5 MiB, which jit_train_step(28) needs" in text
    assert "jit(train_step)/sub gen_f_jax.py:14" in text
    assert len(shown) < 20_000
