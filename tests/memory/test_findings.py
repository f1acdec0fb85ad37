"""Findings in general: units, the catalogue, and advice on recording better."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.formats.chrome_traces import opened
from tests.house.scratch import Scratch
from tests.memory.kinds import found_by
from tests.memory.records import alloc, events
from tests.tables.fake import FakeReader

from peakline.check.units import (
    BYTES,
    PS,
    SHARE,
    Unit,
    part_amount,
    share_amount,
    share_or_time,
    size_amount,
    time_amount,
)
from peakline.errors import UsageError
from peakline.findings import kinds as folder
from peakline.findings.catalogue import kind_names, kinds
from peakline.findings.finding import Finding
from peakline.findings.kinds import accounting, fragmentation_at_peak, near_capacity
from peakline.findings.recording_advice import (
    to_count_memory,
    to_explain_time,
    to_mark_steps,
    to_place_memory,
    to_place_ops,
    to_place_time,
    to_record_memory,
)
from peakline.memory.peak.explained import AllocatorPeak, PeakBuffer, find_peaks
from peakline.tables.profile import Profile


def findings(*rows):
    (peak,) = find_peaks(events(rows))
    return found_by(accounting, near_capacity, fragmentation_at_peak, peak=peak)


def at_peak(in_use, free, fragmentation=None):
    return alloc(1, in_use, in_use_bytes=in_use, free_bytes=free, fragmentation=fragmentation)


def test_a_healthy_profile_has_none():
    assert findings(at_peak(400, 600, 0.1)) == []
    assert findings(alloc(1, 10)) == []


@each_row(("in_use", "kinds"), [(949, []), (950, ["near_capacity"])])
def test_a_peak_near_the_capacity(in_use, kinds):
    assert [finding.kind for finding in findings(at_peak(in_use, 1000 - in_use))] == kinds


def test_near_capacity_carries_its_numbers():
    (finding,) = findings(at_peak(960, 40))
    assert finding.evidence == {
        "allocator": "",
        "peak_bytes": 960,
        "capacity_bytes": 1000,
        "share": 0.96,
    }
    assert "96.0%" in finding.title


@each_row(
    ("in_use", "fragmentation", "found"),
    [
        (500, 0.5, True),
        (500, 0.49, False),
        (499, 0.9, False),  # the pool can still grow
        (951, 0.9, False),  # hardly anything is free
        (950, 0.9, True),
    ],
)
def test_fragmentation_where_it_locks_memory_up(in_use, fragmentation, found):
    kinds = [f.kind for f in findings(at_peak(in_use, 1000 - in_use, fragmentation))]
    assert ("fragmentation_at_peak" in kinds) is found


def test_a_negative_rest_is_an_accounting_finding():
    (finding,) = findings(alloc(1, 100, in_use_bytes=100), alloc(2, 100, in_use_bytes=130))
    assert finding.kind == "accounting"
    assert finding.evidence["unattributed_bytes"] == -70


def test_json_shape():
    assert Finding("kind", "info", "title", {"n": 1}, "do").as_json() == {
        "kind": "kind",
        "severity": "info",
        "title": "title",
        "evidence": {"n": 1},
        "suggestion": "do",
    }


@each_row(
    ("parse", "text", "measured", "shown", "limit"),
    [
        (size_amount, "10GB", 12.34e9, "12.3 GB", "10.0 GB"),
        (size_amount, "10GB", 12.34e6, "12.3 MB", "10.0 GB"),
        (size_amount, "10GB", 512, "512 B", "10.0 GB"),
        (size_amount, "10gb", 12.34e9, "12.3 GB", "10.0 GB"),
        (size_amount, "10GiB", 3 * 2**30, "3.0 GiB", "10.0 GiB"),
        (size_amount, "1.25 GiB", 2**30, "1.00 GiB", "1.25 GiB"),
        (size_amount, "10GiB", 10 * 2**30 + 2**20, "10.001 GiB", "10.000 GiB"),
        (size_amount, "64k", 1000, "1.0 kB", "64.0 kB"),
        (size_amount, "4096", 2048, "2.0 KiB", "4.0 KiB"),
        (time_amount, "150ms", 12_400_000_000, "12.400 ms", "150 ms"),
        (time_amount, "1.5 s", 2 * 10**12, "2.000 s", "1.5 s"),
        (time_amount, "1s", 10**9, "1.000 ms", "1 s"),
        (share_amount, "10%", 0.123, "12.3%", "10.0%"),
        (share_amount, "0.1", 0.1234, "0.123", "0.1"),
        (share_or_time, "20ms", 10**10, "10.000 ms", "20 ms"),
        (share_or_time, "5%", 0.01, "1.0%", "5.0%"),
        (share_or_time, "0", 0.0, "0.000", "0"),
    ],
)
def test_a_figure_is_shown_in_the_unit_of_its_limit(parse, text, measured, shown, limit):
    amount = parse(text)
    assert amount.unit.pair(measured, amount.value) == (shown, limit)


@each_row(
    ("parse", "text", "message"),
    [
        (size_amount, "10 apples", "is no size"),
        (time_amount, "150", "is no time"),
        (time_amount, "10%", "is no time"),
        (share_amount, "5", "is no share"),
        (part_amount, "130%", "more than the whole"),
        (share_or_time, "5", "or a time such as 20ms"),
        (share_or_time, "5 GB", "is no time"),
    ],
)
def test_what_is_no_amount_is_refused(parse, text, message):
    with pytest.raises(UsageError, match=message):
        parse(text)


@each_row(
    ("measure", "value", "text"),
    [(BYTES, 2**20, "1.0 MiB"), (PS, 10**9, "1.000 ms"), (SHARE, 0.5, "0")],
)
def test_without_a_unit_a_figure_has_the_usual_one(measure, value, text):
    assert Unit(measure).text(value) == text


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
    result = answer("tool", "memory_findings", LEAK, "-p", "kind=seen_memory")["findings"]
    assert result == [one for one in memory if one["kind"] == "seen_memory"]
    (host,) = answer("tool", "time_findings", LEAK)["hosts"]
    assert [one["kind"] for one in host["findings"]] == ["counted_steps"]
    first = answer("summary", LEAK, "--json")["first"]
    assert (first[0]["kind"], first[0]["gain_share"]) == ("counted_steps", 0.75)


@pytest.mark.nightly
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


STEP = "torch/profiler/profiler.py(1236): step"


def profile(*names):
    rows = [{"event_id": n, "line_id": 0, "name": name} for n, name in enumerate(names)]
    return Profile(FakeReader({"events": rows}))


@each_row(
    ("names", "says"),
    [
        (["aten::mm"], "mark them with the step() of torch.profiler and a schedule= "),
        (
            ["aten::mm", STEP],
            "the program calls step() of torch.profiler, which records steps only ",
        ),
        (["aten::mm", f"site-packages/{STEP}"], "the program calls step() of torch.profiler, "),
        (["aten::mm", "train.py(3): step"], "mark them with the step() of torch.profiler and "),
        (["PjitFunction(f)"], "mark them with jax.profiler.StepTraceAnnotation"),
        (["EagerExecute: MatMul"], "mark them with tf.profiler.experimental.Trace(..., _r=1)"),
        (["x"], "mark them with jax.profiler.StepTraceAnnotation, tf.profiler.experimental."),
    ],
)
def test_how_to_mark_steps(names, says):
    assert to_mark_steps(profile(*names)).startswith(says)


@each_row(
    ("names", "says"),
    [
        (["aten::mm"], "with_stack=True"),
        (["aten::mm", "train.py(3): run"], "native stacks"),
        (["PjitFunction(f)"], "jax.profiler.ProfileOptions"),
        (["PjitFunction(f)", "$train.py:3 run"], "native stacks"),
        (["FunctionRun"], "tf.profiler.experimental.ProfilerOptions"),
        (["x"], "the Python tracer of the profiler"),
    ],
)
def test_what_explains_time_without_events(names, says):
    assert says in to_explain_time(profile(*names))


@each_row(
    ("names", "says"),
    [
        (["aten::mm"], "profile_memory=True"),
        (["PjitFunction(f)", "FunctionRun"], "save_device_memory_profile"),
        (["FunctionRun"], "TF_CPU_ALLOCATOR_USE_BFC=1"),
        (["x"], ""),
    ],
)
def test_how_to_record_memory(names, says):
    assert says in to_record_memory(profile(*names))
    assert bool(says) == bool(to_record_memory(profile(*names)))


def test_a_format_without_events():
    assert to_record_memory(Profile(FakeReader({}))) == ""


@each_row(
    ("events", "memory", "ops"),
    [
        ([{"name": "aten::mm"}], 1, ["record_shapes=True", "with_stack=True"]),
        ([{"name": "aten::mm", "args": {"Input Dims": [[2, 3]]}}], 1, ["with_stack=True"]),
        ([{"name": "aten::mm"}, {"name": "train.py(3): f"}], 0,
         ["record_shapes=True", "with_stack=True"]),
        ([{"name": "aten::mm", "args": {"Input Dims": [[2]]}}, {"name": "nn.Module: Net_0"},
          {"name": "train.py(3): f"}], 0, []),
        # No trace of PyTorch.
        ([{"name": "x"}], 0, []),
    ],
)  # fmt: skip
def test_what_else_a_trace_of_pytorch_could_have(tmp_path, events, memory, ops):
    more = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "cat": "cpu_op"}
    profile = opened(tmp_path, {"traceEvents": [more | one for one in events]})
    assert bool(to_place_memory(profile)) == bool(to_place_time(profile)) == bool(memory)
    lines = to_place_ops(profile)
    assert len(lines) == len(ops)
    assert all(word in line for word, line in zip(ops, lines, strict=True))


def test_what_is_no_trace_lacks_no_setting_of_a_profiler():
    assert to_place_ops(profile("aten::mm")) == ()
    assert to_place_memory(profile("aten::mm")) == ""


@each_row(
    ("peaks", "is_said"),
    [
        ([("CPU", 2, "gradient")], True),
        ([("CPU", 2, "parameter")], False),
        ([("CPU", 2, "gradient"), ("CUDA:0", 3, "parameter")], False),
        ([("CPU mapped", 2, "")], False),
        ([], False),
    ],
)
def test_parameters_from_before_a_recording_on_a_cpu_are_missed(tmp_path, peaks, is_said):
    def peak(allocator, size, category):
        buffer = PeakBuffer("aten::mm", "", "", "", size, 1, None, category)
        return AllocatorPeak(
            allocator, None, None, size, 0, None, None, None, 1, 0, 0, 0, size, (buffer,),
            reported=True, double_allocations=0, unexplained_deallocations=0,
        )  # fmt: skip

    event = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "cat": "cpu_op", "name": "aten::mm"}
    trace = opened(tmp_path, {"traceEvents": [event]})
    made = [peak(*one) for one in peaks]
    assert ("wait=0" in to_count_memory(trace, made)) == is_said
    assert to_count_memory(profile("FunctionRun"), made) == ""
