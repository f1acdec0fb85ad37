"""Limits, a baseline, its file, and the summary for a pull request."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compare.test_diff import answer, program
from tests.each_row import each_row
from tests.memory.records import alloc, free, steps_at

from peakline.check.baseline import is_baseline, read_baseline, write_baseline
from peakline.check.limits import Limits, check_limits
from peakline.compare.memory import compare
from peakline.compare.state import AllocatorState, Kind, MemoryState, groups_of, state_of
from peakline.errors import InputError, NotFoundError
from peakline.render.markdown import code, summary_markdown

ALLOCATOR = "bfc_cpu_allocator_for_gpu"


def verdicts(checks):
    return [(check.name, check.passed) for check in checks]


def state(peak, allocator="gpu", **more):
    return AllocatorState(allocator, peak, groups_of([(Kind("p", "", "", ""), peak, 1)]), **more)


def check(*states, baseline=None, **limits):
    before = None if baseline is None else MemoryState(tuple(baseline))
    return check_limits(MemoryState(states), Limits(**limits), before)


def test_a_limit_is_kept_up_to_itself():
    assert verdicts(check(state(100), max_peak_bytes=100)) == [("peak", True)]
    (broken,) = check(state(101), max_peak_bytes=100)
    assert (broken.passed, broken.measured, broken.limit) == (False, 101, 100)
    assert broken.reason == "101 B in use, 100 B allowed; largest: p, 101 B"
    assert [(row["op"], row["bytes"]) for row in broken.rows] == [("p", 101)]


def test_every_allocator_must_keep_it():
    checks = check(state(1, "a"), state(9, "b"), max_peak_bytes=5)
    assert [(one.allocator, one.passed) for one in checks] == [("a", True), ("b", False)]


def test_one_allocator_of_several():
    both = MemoryState((state(1, "a"), state(9, "b")))
    (one,) = check_limits(both, Limits(max_peak_bytes=5), allocator="a")
    assert (one.allocator, one.passed) == ("a", True)
    with pytest.raises(NotFoundError, match="no allocator 'c' in the profile; there is: a, b"):
        check_limits(both, Limits(max_peak_bytes=5), allocator="c")


def test_no_memory_at_all_breaks_every_limit():
    limits = Limits(max_peak_bytes=9, max_growth_per_step_bytes=9, max_fragmentation=1.0)
    checks = check_limits(answer([]), limits, answer([alloc(1, 5, allocator="cpu")]))
    assert [one.name for one in checks] == [
        "peak", "growth per step", "fragmentation", "peak against the baseline",
    ]  # fmt: skip
    for one in checks:
        assert (one.passed, one.measured) == (False, None)
        assert one.reason == "cannot be measured: no memory events in this profile"


def test_what_cannot_be_measured_is_broken():
    rows = [alloc(None, 8, allocator="cpu"), free(None, 8, allocator="cpu")]
    limits = Limits(max_peak_bytes=9, max_growth_per_step_bytes=9, max_fragmentation=1.0)
    checks = check_limits(answer(rows), limits)
    assert [(one.passed, one.measured) for one in checks] == [(False, None)] * 3
    assert [one.reason.removeprefix("cannot be measured: ") for one in checks] == [
        "2 records have no id and no address, so their buffers cannot be followed",
        "nothing records where steps begin",
        "the profile has neither the allocator's figure nor addresses",
    ]


def test_growth_is_not_measured_where_frees_cannot_be_followed():
    rows = []
    for n in range(8):
        rows += [alloc(n, 4096, op="p", shape="[1024]", step_id=n), free(None, 4096)]
    (one,) = check_limits(
        answer(rows, steps_at(*range(0, 18, 2))), Limits(max_growth_per_step_bytes=0)
    )
    assert (one.passed, one.reason) == (
        False,
        "cannot be measured: 8 records have no id and no address, so frees cannot be followed",
    )


def test_growth_that_the_memory_in_use_does_not_bear_out_is_none():
    def run(in_use):
        rows = [
            alloc(n, 65536, op="p", shape="[9]", step_id=n, in_use_bytes=in_use(n))
            for n in range(12)
        ]
        return check_limits(answer(rows, steps_at(*range(13))), Limits(max_growth_per_step_bytes=0))

    assert [one.measured for one in run(lambda n: 10**6 + 65536 * n)] == [65536]
    assert [one.measured for one in run(lambda _: 10**6)] == [0]


def test_too_few_steps_tell_no_growth():
    def kept(count):
        rows = [
            alloc(n, 4096, op="p", shape="[1024]", step_id=n, in_use_bytes=4096 * (n + 1))
            for n in range(count)
        ]
        result = answer(rows, steps_at(*range(count + 1)))
        return check_limits(result, Limits(max_growth_per_step_bytes=0))[0]

    assert kept(2).reason == "cannot be measured: there are 2 steps; 6 are needed to see growth"
    # As much more after every one of them is a leak already.
    for count in (3, 5, 6):
        assert (kept(count).measured, kept(count).passed) == (4096, False)


def test_growth_of_what_is_never_seen_to_end_is_not_measured():
    rows = [alloc(n, 4096, op="p", shape="[1024]", step_id=n) for n in range(9)]
    (one,) = check_limits(answer(rows, steps_at(*range(10))), Limits(max_growth_per_step_bytes=0))
    assert not one.passed
    assert one.reason == (
        "cannot be measured: no end of p [1024] is recorded, and the allocator does not report "
        "what is in use"
    )


def test_the_recorded_leak_breaks_its_limits_and_the_healthy_twin_keeps_them():
    limits = Limits(max_peak_bytes=30 * 2**20, max_growth_per_step_bytes=0, max_fragmentation=0.2)
    leak, healthy = program("leak_list"), program("leak_list_healthy")
    assert verdicts(check_limits(healthy, limits)) == [
        ("peak", True), ("growth per step", True), ("fragmentation", True),
    ]  # fmt: skip
    checks = check_limits(leak, limits, healthy)
    assert verdicts(checks) == [
        ("peak", False),
        ("growth per step", False),
        ("fragmentation", True),
        ("peak against the baseline", False),
        ("growth per step against the baseline", False),
    ]
    assert [one.rows[0]["op"] for one in checks if not one.passed] == ["model/hidden/MatMul"] * 4
    assert checks[1].reason == (
        "every step leaves 768.0 KiB, 0 B allowed; most of it model/hidden/MatMul float [192, 1024]"
    )
    assert verdicts(check_limits(healthy, Limits(), leak)) == [
        ("peak against the baseline", True), ("growth per step against the baseline", True),
    ]  # fmt: skip


@each_row("name", ["leak_list", "huge_temporary", "fragmentation", "late_slot"])
def test_a_recording_keeps_to_itself(name):
    result = program(name)
    assert all(one.passed for one in check_limits(result, Limits(tolerance=0), result))


def test_the_tolerance():
    for peak, tolerance, passed in ((105, 0.05, True), (106, 0.05, False), (106, 0.06, True)):
        (one, _) = check(state(peak), baseline=[state(100)], tolerance=tolerance)
        assert (one.name, one.passed) == ("peak against the baseline", passed)
    assert one.reason == "106 B in use, 100 B in the baseline (+6.0%), 106 B allowed"


def test_a_doubled_batch_is_told_in_the_reason():
    checks = check_limits(program("doubled_batch"), Limits(), program("doubled_batch_healthy"))
    (broken,) = [one for one in checks if not one.passed]
    assert "a dimension of 192 became 384 in 6 groups of buffers: +5.4 MiB" in broken.reason
    assert broken.rows[0]["what"] == "same op, [192, 1024] -> [384, 1024]"


def test_growth_below_that_of_a_leak_is_no_growth_against_a_baseline():
    def grows(rate):
        return state(10**6, steps=9, growth_per_step=rate)

    for rate, passed in ((512, True), (1024, True), (1025, False)):
        (_, one) = check(grows(rate), baseline=[grows(0)])
        assert (one.name, one.passed) == ("growth per step against the baseline", passed)


def test_a_baseline_without_steps_is_told_and_not_compared():
    old = state(100, growth_unknown="nothing records where steps begin")
    (_, one) = check(state(100, steps=9, growth_per_step=10**6), baseline=[old])
    assert (one.passed, one.measured, one.verdict) == (True, None, "not compared")
    assert one.reason == "not compared: in the baseline, nothing records where steps begin"
    (_, one) = check(old, baseline=[state(100, steps=9, growth_per_step=0.0)])
    assert (one.passed, one.reason) == (
        False,
        "cannot be measured: nothing records where steps begin",
    )


def test_allocators_that_only_one_of_the_two_has():
    (new, gone) = check(state(5, "xla_gpu_host_bfc"), baseline=[state(100, "GPU_0_bfc")])
    assert (new.allocator, new.passed, new.measured) == ("xla_gpu_host_bfc", False, 5)
    assert "the baseline has no such allocator, only GPU_0_bfc" in new.reason
    assert (gone.allocator, gone.passed, gone.measured) == ("GPU_0_bfc", False, None)
    assert "the profile has no such allocator, only xla_gpu_host_bfc" in gone.reason
    checks = check(state(100, "cuda:0"), baseline=[state(100, "GPU_0_bfc")])
    assert [one.verdict for one in checks] == ["pass", "not compared"]


def test_an_empty_baseline_breaks():
    (one,) = check_limits(answer([alloc(1, 5)]), Limits(), answer([]))
    assert (one.passed, one.reason) == (
        False,
        "cannot be measured: the baseline: no memory events in this profile",
    )


def test_fragmentation_made_from_addresses():
    rows = [alloc(n * 10, 10, op="p") for n in range(5)]
    rows += [free(10), free(30), alloc(100, 60, op="q")]
    (one,) = check_limits(answer(rows), Limits(max_fragmentation=0.4))
    assert (one.measured, one.passed) == (0.5, False)
    assert "made from addresses" in one.reason
    assert "50.0% of the free memory at the peak is not in its largest piece" in one.reason


@each_row("name", ["leak_list", "doubled_batch", "fragmentation", "late_slot"])
def test_a_baseline_survives_its_file(name):
    result = state_of(program(name))
    content = json.dumps({"checks": [], "allocators": write_baseline(result)}, indent=2).encode()
    assert is_baseline(content)
    back = read_baseline(content, "base.json")
    for one, other in zip(result.allocators, back.allocators, strict=True):
        assert one.as_json() == other.as_json()
        assert one.groups == other.groups
        assert [leak.kind for leak in one.leaks] == [leak.kind for leak in other.leaks]
    assert all(not one.groups for one in compare(back, result).allocators)
    healthy = state_of(program(f"{name}_healthy"))
    answer = [
        [(one.name, one.passed, one.limit) for one in check_limits(result, Limits(), base)]
        for base in (healthy, read_baseline(
            json.dumps({"allocators": write_baseline(healthy)}).encode(), "x"))
    ]  # fmt: skip
    assert answer[0] == answer[1]


def test_what_memory_json_wrote_is_a_baseline_for_peaks():
    result = program("leak_list_healthy")
    document = {"profile": {}, "allocators": [peak.as_json() for peak in result.allocators]}
    back = read_baseline(json.dumps(document).encode(), "base.json")
    (one,) = compare(back, result).allocators
    assert (one.groups, one.growth) == ((), ())
    assert back.allocators[0].peak_bytes == 20578816
    checks = check_limits(program("leak_list"), Limits(), back)
    assert [(one.verdict, one.name) for one in checks] == [
        ("fail", "peak against the baseline"),
        ("not compared", "growth per step against the baseline"),
    ]
    assert "one that peakline check --json wrote has it" in checks[1].reason
    # What was not at the baseline's peak may have been there all the same.
    (one,) = compare(back, program("late_slot")).allocators
    assert {row.change for row in one.groups} & {"new", "gone"} == set()
    assert "now at the peak" in {row.change for row in one.groups}


BUFFER = {"op": "p", "region_type": "", "data_type": "", "shape": "", "bytes": 5, "count": 1}
GOOD = {"allocator": "a", "peak_bytes": 5, "peak_buffers": [BUFFER]}


@each_row(
    ("change", "message"),
    [
        ({"allocator": 3}, "allocator is no text"),
        ({"peak_bytes": "5"}, "peak_bytes is no number of bytes"),
        ({"peak_bytes": True}, "peak_bytes is no number of bytes"),
        ({"peak_bytes": 2**70}, "peak_bytes is no number of bytes"),
        ({"peak_bytes": 6}, "the peak buffers of a do not add up to its peak"),
        ({"peak_buffers": {}}, "peak_buffers is no list"),
        ({"peak_buffers": [5]}, "an object is expected"),
        ({"growth_per_step_bytes": -1}, "growth_per_step_bytes is no positive number"),
        ({"growth_per_step_bytes": float("nan")}, "growth_per_step_bytes is no positive number"),
        ({"steps": 1.5}, "steps is no number of bytes"),
    ],
)
def test_a_damaged_baseline_is_one_clear_error(change, message):
    assert read_baseline(json.dumps({"allocators": [GOOD]}).encode(), "b").allocators
    content = json.dumps({"allocators": [GOOD | change]}).encode()
    with pytest.raises(InputError, match=re.escape(message)):
        read_baseline(content, "b")


@each_row("content", [b"", b"{", b"[]", b"{}", b"[" * 100_000, b'{"allocators":1}'])
def test_what_is_no_baseline_is_one_clear_error(content):
    with pytest.raises(InputError, match=r"^b: is no baseline"):
        read_baseline(content, "b")
    with pytest.raises(InputError, match="names an allocator twice"):
        read_baseline(json.dumps({"allocators": [GOOD, GOOD]}).encode(), "b")


@each_row(
    ("head", "is_one"),
    [
        (b'{"profile": {', True),
        (b' {\n "allocators" : [', True),
        (b'{"traceEvents": [', False),
        (b'{"schemaVersion": 1', False),
        (b"\n\x12", False),
    ],
)
def test_a_baseline_is_known_by_its_first_key(head, is_one):
    assert is_baseline(head) is is_one


def test_the_summary():
    checks = check(
        state(2**20, "GPU_0_bfc", steps=9, growth_per_step=0.0),
        max_peak_bytes=2**19,
        max_growth_per_step_bytes=0,
    )
    states = MemoryState((state(2**20, "GPU_0_bfc"), state(2**10, "cpu")))
    assert (
        summary_markdown("run.pb", checks, states, names={}, baseline="main.json")
        == """\
### ❌ Memory: 1 of 2 limits failed

Profile `run.pb`, against the baseline `main.json`.

|  | Limit | Allocator | Measured | Allowed |
| --- | --- | --- | ---: | ---: |
| ❌ fail | peak | `GPU_0_bfc` | 1.0 MiB | 512.0 KiB |
| ✅ pass | growth per step | `GPU_0_bfc` | 0 B | 0 B |

- `GPU_0_bfc`, peak: `1.0 MiB in use, 512.0 KiB allowed; largest: p, 1.0 MiB`

**Largest at the peak, `GPU_0_bfc`**

| Size | Count | Op | Region | Type | Shape |
| ---: | ---: | --- | --- | --- | --- |
| 1.0 MiB | 1 | `p` |  |  |  |

<details>
<summary>Largest at the peak of 1&#46;0 KiB&#44; <code>cpu</code></summary>

| Size | Share | Count | Op | Region | Type | Shape |
| ---: | ---: | ---: | --- | --- | --- | --- |
| 1.0 KiB | 100.0% | 1 | `p` |  |  |  |

</details>
"""
    )


def test_the_summary_of_limits_that_are_kept():
    text = summary_markdown("run.pb", check(state(5), max_peak_bytes=5), MemoryState(()), names={})
    assert text.startswith("### ✅ Memory: 1 limit passed\n\nProfile `run.pb`.\n")
    assert "\n- " not in text


HOSTILE = "a|b`c` <img src=x onerror=1> @someone #1 [x](http://e.org)\n| --- |\x1b[2J"


def test_hostile_names_stay_in_their_cell():
    one = replace(
        state(9), groups=groups_of([(Kind(HOSTILE, "", "", ""), 9, 1)]), allocator=HOSTILE
    )
    checks = check_limits(MemoryState((one,)), Limits(max_peak_bytes=1))
    text = summary_markdown(HOSTILE, checks, MemoryState((one,)), names={})
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for row, columns in zip(rows, [5, 5, 5, 6, 6, 6], strict=True):
        assert row.count(" | ") == columns - 1
        assert row.count("|") == columns + 1
    for mark in ("<img", "@someone", "](", "\x1b", "\n| --- |\\", "`c`"):
        assert mark not in text


@given(st.text())
def test_code_holds_any_text_in_one_cell(text):
    result = code(text)
    assert "\n" not in result
    assert "|" not in result
    assert re.fullmatch(r"`([^`]+)`|<code>([^<>`|*_\[\]@]*)</code>", result)
    assert len(result) < 3000
