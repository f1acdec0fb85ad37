"""What stands behind the peak on the screen and in JSON, and what was live at a named time."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from tests.analysis.histories import history, records, steps_at
from tests.analysis.records import alloc, free
from tests.each_row import each_row
from tests.engine.ending import DATA

import peakline
from peakline.document.memory import steps_near
from peakline.errors import UsageError
from peakline.findings.finding import Finding
from peakline.memory.growth.series import find_growth
from peakline.memory.marks import find_marks
from peakline.render.terminal.findings import evidence_part
from peakline.render.terminal.screen import show
from peakline.text import parse_time

PROGRAMS = DATA / "programs"
MIB = 2**20


def program(name):
    return PROGRAMS / f"{name}.xplane.pb.gz"


@pytest.fixture(name="screen")
def _screen(peakline):
    def run(path, *words):
        run = peakline("memory", path, *words)
        assert run.code == 0
        return run.out

    return run


def sections(out):
    """The indented blocks of the screen by their first line."""
    blocks = out.replace("\n\n", "\0").split("\0")
    return {block.strip().split("\n")[0].strip(): block for block in blocks}


def test_a_leak_is_left_to_its_finding(screen):
    out = screen(program("leak_list"))
    assert (
        "  between steps    12.0 MiB in use after the first of 20 steps, 26.1 MiB after the last\n"
        "  allocated        9.8 MiB per step in 17 allocations, 0.3 times the peak\n"
    ) in out
    told = sections(out)["what would lower the peak"]
    # Recomputing what a list keeps, dropping "older copies" of it or halving it is no advice.
    assert [line.split()[:6:2] for line in told.splitlines()[2:]] == [["3.4", "1.4", "28.3"]]
    assert "compute it in pieces, or fused  gradient_tape/model/head/MatMul/MatMul_1" in told
    live = [line.split() for line in sections(out)["live at the peak"].splitlines()]
    (row,) = [line for line in live if "model/hidden/MatMul" in line]
    assert row[:2] == ["14.4", "MiB"]
    assert " ".join(row[3:]) == "18 model/hidden/MatMul output float [192, 1024] 18 steps"


def test_the_fullest_steps_are_counted(screen):
    every = "  near the peak    within 5% of it in 14 of 14 steps\n"
    assert every in screen(program("huge_temporary"))
    assert every.replace("14 of", "1 of") in screen(program("huge_temporary_once"))


@given(records)
@settings(max_examples=200)
def test_steps_near_the_peak_are_those_a_person_would_count(rows):
    found = history(rows)
    steps = steps_at(*range(0, len(rows) + 1, 4))
    for number in range(len(found.lifetimes.allocators)):
        growth = find_growth(found, number, find_marks(found, number, steps))
        if growth is None:
            continue
        own = found.rows_of(number).tolist()
        used = dict(zip(own, found.used[own].tolist(), strict=True))
        bounds = [growth.marks.start, *growth.marks.rows.tolist()]
        near = 0
        for first, end in pairwise(bounds):
            inside = [used[row] for row in own if first <= row < end]
            before = [used[row] for row in own if row < first][-1:]
            near += max(inside + before, default=0) >= 0.95 * max(0, *used.values())
        assert steps_near(found, growth) == near


def test_a_fragmented_pool_is_described(screen):
    out = screen(program("fragmentation"))
    assert "of the pool" not in sections(out)["what would lower the peak, each alone"]
    assert (
        "  Buffers of the profile lay on 52.9 MiB, though they took at most 30.3 MiB at a time; "
        "22.6 MiB of that only because of the pieces, in 12 allocations.\n"
        "  The free pieces at 389.651 ms: 1 of 2.0 MiB to 4.0 MiB, 18 of 1.0 MiB to 2.0 MiB, "
        "1 of 128.0 KiB to 256.0 KiB.\n"
    ) in out


def test_the_rows_that_matter_stand_under_a_finding(capsys):
    rows = tuple(
        {"op": f"op\x1b{n}", "data_type": "float", "shape": "[4]", "since_step": step,
         "bytes_per_step": rate, "kept_bytes": kept}
        for n, (step, rate, kept) in enumerate(
            [(7, 4096, 8192), (8, 2048, 0), (9, 1, 81), (9, 1, 82), (None, 0, 8192)]
        )
    )  # fmt: skip
    finding = Finding("leak", "warning", "", {"steps_found_by": "steps"}, "", rows)
    show(evidence_part(finding, None, {7: "train 7"}))
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["PER", "STEP", "RETAINED", "OP", "TYPE", "SHAPE", "SINCE", "STEP"],
        ["4.0", "KiB", "8.0", "KiB", "op\\x1b0", "float", "[4]", "7", "(train", "7)"],
        ["2.0", "KiB", "0", "B", "op\\x1b1", "float", "[4]", "8"],
        ["1", "B", "82", "B", "op\\x1b3", "float", "[4]", "9"],
        ["0", "B", "8.0", "KiB", "op\\x1b4", "float", "[4]"],
    ]
    for few in (rows[:1], rows[:1] + rows[2:3], ()):
        assert evidence_part(replace(finding, rows=few), None, {}) == []
    show(evidence_part(replace(finding, evidence={"steps_found_by": "period"}), None, {}))
    out = capsys.readouterr().out
    assert "SINCE" not in out
    assert out.split()[:2] == ["PER", "REPETITION"]


def test_repetitions_that_were_found_are_not_called_steps(screen):
    out = screen(program("leak_functions"))
    lines = [line for line in out.splitlines() if "repetition" in line]
    assert [line[:23].strip() for line in lines[:4]] == [
        "steps found",
        "near the peak",
        "between repetitions",
        "allocated",
    ]
    assert lines[0].split(maxsplit=2)[2].startswith("17 repetitions of about 20 allocations; each")
    assert "768.0 KiB more stay in memory with every repetition since repetition 0" in lines[4]
    assert "more repetitions" in lines[4]
    assert " steps, " not in out


def test_moments_of_other_buffers(screen):
    out = sections(screen(program("doubled_batch")))
    # Of the two others there are, one has little that the peak does not have.
    assert [line.split() for line in out["almost as full, of other buffers"].splitlines()[2:]] == [
        "22.6 MiB 1 91.505 ms 3 (train 3) 3.5 MiB optimizer/ResourceApplyAdam_1 float [1024,512]"
        .split()
    ]  # fmt: skip
    for name in ("huge_temporary", "huge_temporary_healthy"):
        assert "almost as full" not in screen(program(name))


def test_a_step_has_its_own_savings_and_no_lines_about_the_whole(screen):
    whole, out = screen(program("huge_temporary")), screen(program("huge_temporary"), "--step", "3")
    title = "what would lower the peak, each alone"
    for text, saves, peak in ((whole, "24.5", "19.5"), (out, "27.0", "16.6")):
        first = sections(text)[title].splitlines()[2].split()
        assert (first[0], first[4]) == (saves, peak)
    assert "between steps" not in out
    assert "almost as full" not in out


def test_few_records_and_single_moments_are_told_plainly(screen, opened):
    rows = [alloc(n, MIB, op=f"op{n}") for n in range(4)] + [free(n) for n in range(4)]
    for path in (opened(rows), DATA / "pprof" / "device_memory.pprof.pb.gz"):
        assert "what would lower" not in screen(path)
        assert "between steps" not in screen(path)


def test_nothing_tells_steps_apart(screen, opened):
    rows = []
    for n in range(60):
        rows += [alloc(n, MIB, op=f"op{n}"), alloc(1000 + n, 1, op=f"small{n}"), free(n)]
    out = screen(opened(rows))
    assert "  between steps    not known: neither steps nor a period in the allocations\n" in out
    assert "  allocated  " not in out


def test_what_a_loop_repeats_is_named(screen, opened):
    rows, steps, name = [], [], "scan/while/body/" + "x" * 80 + "/einsum"
    for step in range(6):
        start = len(rows)
        for n in range(12):
            rows += [alloc(n, MIB, op=name, data_type="float", shape="[512, 512]"), free(n)]
        steps.append({"step_id": step, "name": str(step), "start_ps": start,
                      "end_ps": len(rows) - 1})  # fmt: skip
    (line,) = [line for line in screen(opened(rows, steps)).splitlines() if "  allocated  " in line]
    assert line.startswith(
        "  allocated        12.0 MiB per step in 12 allocations, 12.0 times the peak; …xxx"
    )
    assert line.endswith("xxx/einsum float [512, 512] 12 times")


def test_json_has_the_analyses_under_every_allocator(peakline):
    document = json.loads(peakline("memory", program("leak_list"), "--json").out)
    (allocator,) = document["allocators"]
    tool = json.loads(peakline("tool", "memory_findings", program("leak_list")).out)
    for name in ("growth", "fragmentation", "churn", "savings"):
        entries = allocator[name] if name == "savings" else [allocator[name]]
        assert all(row.pop("sentence") for row in tool[name])
        assert [{"allocator": allocator["allocator"]} | entry for entry in entries] == tool[name]
    first, second = allocator["high_moments"]
    assert first["in_use_bytes"] == allocator["peak_bytes"]
    assert first["time_ps"] == allocator["peak_time_ps"]
    assert first["buffers"] == allocator["peak_buffers"]
    assert (second["steps"], len(second["times_ps"])) == ([19], 1)
    assert sum(b["bytes"] for b in second["buffers"]) == second["in_use_bytes"]
    assert "at" not in document


def test_json_where_nothing_tells_steps_or_addresses(peakline, opened):
    rows = [{"activity": "allocation", "allocation_id": 1, "allocated_bytes": 5}]
    (allocator,) = json.loads(peakline("memory", opened(rows), "--json").out)["allocators"]
    assert (allocator["growth"], allocator["fragmentation"]) == (None, None)
    assert allocator["churn"]["turnover"] is None


# -- at a time -----------------------------------------------------------------------------------


@each_row(
    ("text", "picoseconds"),
    [
        ("12.5ms", 12_500_000_000),
        ("1.2s", 1_200_000_000_000),
        ("827750630000ps", 827_750_630_000),
        ("3us", 3_000_000),
        ("7 NS", 7000),
        ("0s", 0),
        ("0.4ps", 0),
        ("999999999999999s", 2**63 - 1),
    ],
)
def test_times(text, picoseconds):
    assert parse_time(text) == picoseconds


@each_row("text", ["", "5", "ms", "-1ms", "1e3ms", "1.ms", "1٢ms"])
def test_what_is_no_time(text):
    with pytest.raises(UsageError, match=r"is no time; write 12\.5ms"):
        parse_time(text)


ROWS = [
    alloc(1, 3 * MIB, op="a", allocator="gpu", step_id=0, time_ps=10**9),
    alloc(2, MIB, op="b", allocator="gpu", time_ps=2 * 10**9),
    free(1, allocator="gpu", time_ps=3 * 10**9),
    alloc(1, 9, op="c", allocator="cpu", time_ps=4 * 10**9),
]
STEPS = [{"step_id": 0, "name": "train 170", "start_ps": 0, "end_ps": 9}]


def test_what_was_live_at_a_time(peakline, opened):
    path = opened(ROWS, STEPS)
    run = peakline("memory", path, "--at", "2.5ms")
    assert (run.code, run.err) == (0, "")
    assert (
        run.out
        == f"""\
{path} (fake, host worker-0, 1.234 ns)

gpu
  in use at 2.500 ms  4.0 MiB (4,194,304 bytes) in 2 buffers
  record before it    at 2.000 ms

  live then
     SIZE  SHARE  COUNT  OP  STEP
  3.0 MiB  75.0%      1  a   0 (train 170)
  1.0 MiB  25.0%      1  b
"""
    )
    out = peakline("memory", path, "--at", "1000000000ps", "--allocator", "gpu").out
    assert "  record before it    at 1.000 ms in step 0 (train 170)\n" in out
    assert "cpu" in peakline("memory", path, "--at", "4ms").out


def test_a_time_before_all_records(peakline, opened):
    path = opened(ROWS, STEPS)
    run = peakline("memory", path, "--at", "0.5ms")
    assert run.code == 0
    assert run.out.splitlines()[2:] == ["no memory is known of at 0.500 ms: records begin later"]
    document = json.loads(peakline("memory", path, "--at", "0.5ms", "--json").out)
    assert document["at"] == {"time_ps": 5 * 10**8, "allocators": []}


def test_a_time_beyond_the_profile_is_a_usage_error(peakline, opened):
    path = opened(ROWS, STEPS)
    assert peakline("memory", path, "--at", "4ms").code == 0
    for words in ((), ("--json",)):
        run = peakline("memory", path, "--at", "4.1ms", *words)
        assert (run.code, run.out) == (2, "")
        assert run.err == (
            "peakline: --at 4.100 ms is not within the profile, which goes from 0 ns to 4.000 ms\n"
        )


def test_one_moment_has_no_other_time(peakline):
    run = peakline("memory", DATA / "oom_report/tf_bfc_oom.log.gz", "--at", "0ms")
    assert (run.code, run.out) == (2, "")
    assert run.err.endswith("tf_bfc_oom.log.gz holds one moment, without a time\n")


def test_json_at_a_time_is_told_besides(peakline):
    words = ("memory", program("leak_list"), "--json")
    whole = json.loads(peakline(*words).out)
    document = json.loads(peakline(*words, "--at", "500ms").out)
    at = document.pop("at")
    assert document == whole
    (one,) = at["allocators"]
    assert one["time_ps"] <= at["time_ps"] == 5 * 10**11
    assert sum(buffer["bytes"] for buffer in one["buffers"]) == one["in_use_bytes"] == 22154752
    peak_time = whole["allocators"][0]["peak_time_ps"]
    at = json.loads(peakline(*words, "--at", f"{peak_time}ps").out)["at"]
    assert at["allocators"][0]["buffers"] == whole["allocators"][0]["peak_buffers"]


def test_at_and_step_together_are_a_usage_error(peakline, opened):
    path = opened(ROWS, STEPS)
    run = peakline("memory", path, "--at", "1ms", "--step", "0")
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert "--at and --step" in run.err
    run = peakline("memory", path, "--at", "soon")
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)


def test_a_profile_without_memory_has_nothing_at_any_time(peakline, sessions):
    run = peakline("memory", sessions / "jax_cpu", "--at", "1ms")
    assert (run.code, run.out.count("\n")) == (0, 1)
    assert run.out.endswith(
        ": no memory events in this profile; JAX records memory on accelerators only; of the heap "
        "on a CPU save jax.profiler.save_device_memory_profile\n"
    )


def test_the_python_face_agrees():
    with peakline.open(program("leak_list")) as profile:
        answer = profile.memory()
    assert [f.kind for f in answer.findings] == ["leak"]
    assert answer.details[0].growth.bytes_per_step == 786432
