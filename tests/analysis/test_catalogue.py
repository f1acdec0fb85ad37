"""The catalogue of kinds: what each declares, and that a new one needs nothing but its file."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.house.scratch import Scratch

from peakline.findings import kinds as folder
from peakline.findings.catalogue import kind_names, kinds

PROGRAMS = DATA / "programs"
LEAK = PROGRAMS / "leak_list.xplane.pb.gz"
FILES = sorted(path.stem for path in Path(folder.__path__[0]).glob("[!_]*.py"))

MEMORY = """
\"\"\"The memory of an allocator was seen.\"\"\"
from peakline.findings.kind import Kind, columns

KIND = Kind("seen_memory", __doc__, about="memory", phrase="memory was seen", severity="warning",
            section="peak", columns=columns("allocator", "peak_bytes", sights="Number of sights"))

def find(context):
    for one in context.allocators:
        evidence = {"allocator": one.allocator, "peak_bytes": one.peak.peak_bytes, "sights": 3}
        yield KIND.finding("memory was seen thrice", evidence, "look away")
"""
TIME = """
\"\"\"The steps were counted.\"\"\"
from peakline.findings.kind import Kind, columns

KIND = Kind("counted_steps", __doc__, about="time", phrase="steps were counted",
            severity="warning", section="steps", columns=columns("steps", "gain_share"),
            saves="gain_share")

def find(context):
    evidence = {"steps": context.facts.count, "gain_share": 0.75}
    yield KIND.finding("steps were counted", evidence, "stop counting")
"""


@each_row("name", FILES)
def test_a_kind_is_a_file_of_its_name(name):
    kind = kinds()[name]
    assert kind.name == name
    assert kind.doc.strip()
    assert {kind.saves, kind.limit} - {""} <= set(kind.columns)
    assert name in kind_names(kind.about)


@pytest.fixture(scope="module")
def extended(tmp_path_factory, root):
    """A scratch copy of the package with two kinds more."""
    with closing(Scratch(tmp_path_factory.mktemp("scratch"), root)) as scratch:
        scratch.add("findings/kinds/seen_memory.py", MEMORY)
        scratch.add("findings/kinds/counted_steps.py", TIME)
        yield scratch


def test_a_new_kind_is_in_every_answer(extended):
    def answer(*arguments):
        return json.loads(extended.peakline(*arguments))

    memory = answer("memory", LEAK, "--json")["findings"]
    assert [one["kind"] for one in memory][-1] == "seen_memory"
    told = answer("tool", "memory_findings", LEAK, "-p", "kind=seen_memory")["findings"]
    assert told == [one for one in memory if one["kind"] == "seen_memory"]
    (host,) = answer("tool", "time_findings", LEAK)["hosts"]
    assert [one["kind"] for one in host["findings"]] == ["counted_steps"]
    first = answer("summary", LEAK, "--json")["first"]
    assert (first[0]["kind"], first[0]["gain_share"]) == ("counted_steps", 0.75)


def test_a_new_kind_is_on_the_screen_in_the_report_and_in_the_docs(extended, tmp_path):
    assert "warning: memory was seen thrice" in extended.peakline("memory", LEAK)
    assert "warning (time): steps were counted" in extended.peakline("summary", LEAK)
    page = tmp_path / "report.html"
    extended.peakline("report", LEAK, "-o", page)
    assert "Number of sights" in page.read_text()
    write = "import generate_docs as g; print(*g.findings_page({!r}, {!r}), sep=chr(10))"
    docs = extended.run("-c", write.format("findings.md", "memory"))
    assert "`seen_memory`](#seen_memory) | warning | The memory of an allocator was seen. |" in docs
    assert "`sights` (Number of sights)" in docs
    assert "`counted_steps`" in extended.run("-c", write.format("time-findings.md", "time"))
