"""``peakline diff`` of memory, time and series of recordings."""

import json

import pytest
from tests.engine.ending import DATA
from tests.memory.hlo_programs import OUTPUT, PARAMETER, TEMPORARY, dump, program, value
from tests.memory.records import alloc, events, free
from tests.tables.fake import FakeReader
from tests.timing.traces import HOST_PLANE, profile_of

import peakline as package
from peakline.compare.programs import match_programs
from peakline.compare.state import ProgramState


@pytest.fixture
def two(monkeypatch, tmp_path):
    """Two paths that open as profiles with these allocator records."""

    def make(before, after):
        readers = {}
        for name, rows in (("before.pb", before), ("after.pb", after)):
            path = tmp_path / name
            path.write_bytes(b"x")
            readers[str(path)] = FakeReader({"allocator_events": events(rows)})
            readers[str(path)].path = str(path)
        monkeypatch.setattr("peakline.formats.open_reader", lambda path, **_: readers[path])
        return tuple(readers)

    return make


BEFORE = [
    alloc(1, 1024, op="net/MatMul", region_type="output", data_type="float", shape="[8,32]",
          allocator="GPU_0_bfc"),
    alloc(2, 512, op="old", allocator="GPU_0_bfc"),
]  # fmt: skip
AFTER = [
    alloc(1, 2048, op="net/MatMul", region_type="output", data_type="float", shape="[16, 32]",
          allocator="cuda:0"),
    alloc(2, 256, op="new", allocator="cuda:0"),
    alloc(1, 64, op="copy", allocator="cpu"),
]  # fmt: skip


def test_the_screen(peakline, two):
    before, after = two(BEFORE, AFTER)
    run = peakline("diff", before, after)
    assert (run.code, run.err) == (0, "")
    assert (
        run.out
        == f"""\
cpu (only after) peak 64 B, cuda:0 peak +768 B (+50.0%)
before  {before} (fake, host worker-0, 1.234 ns)
after   {after} (fake, host worker-0, 1.234 ns)

cpu (only after)
  peak  64 B

  live at the peak
  SIZE  COUNT  OP
  64 B      1  copy

cuda:0
  peak  1.5 KiB -> 2.2 KiB, +768 B (+50.0%)
  note: 'GPU_0_bfc' before and 'cuda:0' after are taken as one: both are GPU 0

  what changed at the peak
    CHANGE   BEFORE    AFTER  OP          REGION  TYPE   SHAPE     WHAT HAPPENED
  +1.0 KiB  1.0 KiB  2.0 KiB  net/MatMul  output  float  [16, 32]  same op, [8, 32] -> [16, 32]
    -512 B    512 B      0 B  old                                  gone
    +256 B      0 B    256 B  new                                  new
"""
    )


def test_the_json(peakline, two):
    before, after = two(BEFORE, AFTER)
    run = peakline("diff", before, after, "--json", "--allocator", "GPU_0_bfc")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert list(document) == [
        "before", "after", "allocators", "findings", "programs", "time", "warnings",
        "is_empty", "sentences",
    ]  # fmt: skip
    assert document["time"] is None
    assert (document["before"]["path"], document["after"]["path"]) == (before, after)
    assert document["findings"] == {"new": [], "gone": [], "worse": []}
    assert document["warnings"] == {"before": [], "after": []}
    (allocator,) = document["allocators"]
    groups = allocator.pop("groups")
    assert (allocator["before"]["peak_bytes"], allocator["after"]["peak_bytes"]) == (1536, 2304)
    assert (allocator["allocator"], allocator["peak_delta_bytes"]) == ("cuda:0", 768)
    assert groups[0] == {
        "op": "net/MatMul", "region_type": "output", "data_type": "float", "shape": "[16, 32]",
        "before_bytes": 1024, "after_bytes": 2048, "delta_bytes": 1024, "before_count": 1,
        "after_count": 1, "change": "shape",
        "was": {
            "op": "net/MatMul",
            "region_type": "output",
            "data_type": "float",
            "shape": "[8, 32]",
        },
        "text": "same op, [8, 32] -> [16, 32]",
    }  # fmt: skip
    assert sum(group["delta_bytes"] for group in groups) == 768


def test_nothing_changed(peakline, two):
    before, after = two(BEFORE, BEFORE)
    run = peakline("diff", before, after)
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines()[0] == "nothing changed"
    assert len(run.out.splitlines()) == 3
    assert (
        json.loads(peakline("diff", before, after, "--json").out)["allocators"][0]["groups"] == []
    )


def test_an_allocator_that_neither_has(peakline, two):
    run = peakline("diff", *two(BEFORE, AFTER), "--allocator", "tpu")
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert (
        "no allocator 'tpu' in either profile; did you mean 'cpu'? there is: GPU_0_bfc, cpu, cuda:0"
        in run.err
    )


def test_hostile_names_are_shown_as_text(peakline, two):
    evil = "[red]\x1b[2J\n"
    rows = [alloc(1, 99, op=evil, allocator=evil), free(1, allocator=evil)]
    run = peakline("diff", *two([alloc(1, 5, allocator=evil, op="a")], rows))
    assert run.code == 0
    assert "\x1b" not in run.out
    assert run.out.count("[red]\\x1b[2J\\n") == 2


def test_both_from_standard_input(peakline):
    run = peakline("diff", "-", "-")
    assert (run.code, run.out) == (2, "")
    assert "only one of the profiles can come from standard input" in run.err


def test_strict_looks_at_both(peakline, two):
    before, after = two([alloc(None, 5)], BEFORE)
    for paths in ((before, after), (after, before)):
        assert peakline("diff", *paths).code == 0
        run = peakline("diff", *paths, "--strict")
        assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
        assert "untracked_allocation (1)" in run.err


def test_a_doubled_batch_on_the_screen(peakline, root):
    programs = root / "tests" / "data" / "programs"
    names = ("doubled_batch_healthy", "doubled_batch")
    run = peakline("diff", *(programs / f"{name}.xplane.pb.gz" for name in names))
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[4:6] == [
        "bfc_cpu_allocator_for_gpu",
        "  peak                18.2 MiB -> 23.5 MiB, +5.3 MiB (+29.2%)",
    ]
    assert "  note: a dimension of 192 became 384 in 6 groups of buffers: +5.4 MiB" in lines
    assert (
        lines[lines.index("  what changed at the peak") + 2].split()
        == (
            "+3.2 MiB 1.8 MiB 5.0 MiB model/hidden/MatMul output float [384, 1024] "
            "same op, [192, 1024] -> [384, 1024]"
        ).split()
    )


def test_findings_that_are_new_and_gone(peakline, root):
    programs = root / "tests" / "data" / "programs"
    one, other = (programs / f"{n}.xplane.pb.gz" for n in ("leak_list_healthy", "leak_list"))
    out = peakline("diff", one, other).out
    assert "\nnew: warning: bfc_cpu_allocator_for_gpu: 768.0 KiB more stay in memory" in out
    assert "  growth per step     0 B -> 768.0 KiB, +768.0 KiB\n" in out
    out = peakline("diff", other, one).out
    assert "\ngone: warning: bfc_cpu_allocator_for_gpu: 768.0 KiB more stay in memory" in out


def test_a_profile_without_memory(peakline, root, sessions):
    other = root / "tests" / "data" / "programs" / "jax_list_20.pprof.pb.gz"
    run = peakline("diff", sessions / "jax_cpu", other)
    assert (run.code, run.err) == (0, "")
    assert "\nbefore: no memory events in this profile\n\ncpu:0 (only after)\n" in run.out
    run = peakline("diff", sessions / "jax_cpu", sessions / "jax_cpu")
    first, _, _, *rest = run.out.splitlines()
    assert first == "nothing changed"
    assert rest == [
        "", "before: no memory events in this profile",
        "", "after: no memory events in this profile",
    ]  # fmt: skip


def test_sessions_and_hosts_of_each(peakline, sessions):
    multi = sessions / "tf2_multihost"
    run = peakline("diff", multi, multi, "--json")
    assert run.code == 0
    document = json.loads(run.out)
    titles = [one["title"] for one in document["ranks"]]
    assert titles == ["localhost_47507", "localhost_56665"]
    assert (document["only_before"], document["only_after"]) == ([], [])
    run = peakline("diff", multi, multi, "--host-after", "localhost_47507")
    assert run.code == 2
    assert "--host-before" in run.err
    run = peakline(
        "diff", multi, multi, "--json",
        "--host-before", "localhost_47507", "--host-after", "localhost:56665",
        "--session-before", "2026_11_20_17_33_46", "--session-after", "2026_11_20_17_33_46",
    )  # fmt: skip
    assert run.code == 0
    document = json.loads(run.out)
    assert document["before"]["path"].endswith("localhost_47507.xplane.pb")
    assert document["after"]["path"].endswith("localhost_56665.xplane.pb")


def test_of_very_many_allocators_the_first_that_changed_are_shown(peakline, two):
    same = [alloc(1, 8, allocator="same")]
    before, after = two(
        same, same + [alloc(n, 8, op="a", allocator=f"new {n:02}") for n in range(60)]
    )
    run = peakline("diff", before, after)
    assert run.code == 0
    assert [line for line in run.out.splitlines()[1:] if "new" in line] == [
        f"new {n:02} (only after)" for n in range(50)
    ]
    assert "\n\nand 11 more allocators (all with --json)\n" in run.out
    assert "and 11 more allocators" in peakline("diff", before, after, "--markdown").out


KIB = 1024


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder of profiles, by name: each holds so many KiB of a history."""

    def make(**sizes):
        readers = {}
        for name, size in sizes.items():
            path = tmp_path / name.replace("_", ".")
            path.write_bytes(b"x")
            rows = [alloc(1, 100 * KIB, op="weights"), alloc(2, size * KIB, op="history")]
            rows += [alloc(3, 1), free(3)]
            readers[str(path)] = FakeReader({"allocator_events": events(rows)})
            readers[str(path)].path = str(path)
        monkeypatch.setattr("peakline.formats.open_reader", lambda path, **_: readers[path])
        return tmp_path, list(readers)

    return make


def test_a_folder_is_read_in_the_order_of_its_numbers(peakline, folder):
    path, _ = folder(heap_10=50, heap_9=40, heap_1=10, heap_2=20)
    (path / ".hidden").write_bytes(b"x")
    (path / "inner").mkdir()
    run = peakline("diff", path, "--json")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    series = document["series"]
    assert [one.rpartition("/")[2] for one in series["paths"]] == [
        "heap.1", "heap.2", "heap.9", "heap.10"
    ]  # fmt: skip
    (grown,) = series["growing"]
    assert grown["op"] == "history"
    assert grown["bytes"] == [size * KIB for size in (10, 20, 40, 50)]
    assert [one["kind"] for one in series["findings"]] == ["leak"]
    # Of all of them the first is compared with the last.
    assert document["before"]["path"].endswith("heap.1")
    assert document["after"]["path"].endswith("heap.10")


def test_the_screen_of_a_series(peakline, folder):
    _, paths = folder(a=10, b=20, c=30)
    run = peakline("diff", *paths)
    assert (run.code, run.err) == (0, "")
    assert "\nover all 3 profiles\n" in run.out
    assert (
        "\ngrows: warning: (unnamed allocator): 10.0 KiB more live in each of 3 profiles: history\n"
    ) in run.out


def test_a_series_in_which_nothing_grows(peakline, folder):
    _, paths = folder(a=10, b=30, c=10)
    run = peakline("diff", *paths)
    assert run.code == 0
    assert run.out.endswith("over all 3 profiles\n  nothing grows from each to the next\n")


def test_two_profiles_are_no_series(peakline, folder):
    _, paths = folder(a=10, b=30)
    assert "series" not in json.loads(peakline("diff", *paths, "--json").out)


def test_one_profile_has_no_difference(peakline, folder):
    path, (one,) = folder(a=10)
    for given, why in ((one, "one profile has no difference"), (path, "fewer than two profiles")):
        run = peakline("diff", given)
        assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
        assert why in run.err


PAIR = [DATA / "programs/time" / f"recompiling{name}.xplane.pb.gz" for name in ("", "_healthy")]
EVIL = "x`|<b>@me\x1b[2J"


def test_the_screen_of_diff_time(peakline):
    run = peakline("diff", *PAIR)
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[lines.index("time") :] == [
        "time",
        "  step time      220.504 ms -> 5.712 ms, -214.792 ms (-97.4%) (median)",
        "  shortest       6.850 ms -> 4.522 ms, -2.329 ms (-34.0%)",
        "  95 of 100      within 517.625 ms -> 7.225 ms, -510.400 ms (-98.6%)",
        "  mean           271.159 ms -> 5.753 ms, -265.406 ms (-97.9%)",
        "  between steps  0.058 ms -> 0.060 ms, +0.002 ms (+2.6%) (median)",
        "",
        "  where the mean step's time goes",
        "       CHANGE      BEFORE     AFTER",
        "  -245.837 ms  245.837 ms      0 ns  compilation",
        "   -18.167 ms   22.891 ms  4.723 ms  host compute",
        "    -0.848 ms    1.015 ms  0.167 ms  launching work",
        "    -0.553 ms    1.416 ms  0.862 ms  no event recorded",
        "",
        "  ops whose self time changed most, per step",
        "      CHANGE     BEFORE     AFTER  ON    OP",
        "  -13.550 ms  15.477 ms  1.927 ms  host  jit(train)/jvp()/dot_general",
        "   -3.659 ms   5.177 ms  1.519 ms  host  jit(train)/transpose(jvp())/dot_general",
        "   -0.444 ms   0.564 ms  0.120 ms  host  jit(train)/transpose(jvp())/select_n",
        "   -0.368 ms   0.919 ms  0.551 ms  host  jit(train)/transpose(jvp())/transpose",
        "",
        (
            "gone: warning: 10 of 10 steps after the first 2 compile train: 91% of their time; "
            "argument 1 changes: f32[424,128], f32[432,128], f32[440,128], ..."
        ),
    ]


def test_the_json_of_diff_time(peakline):
    result = json.loads(peakline("diff", *PAIR, "--json").out)["time"]
    assert list(result) == [
        "before", "after", "chance", "is_chance", "parts", "ops_per", "ops", "other_ops",
        "findings", "notes",
    ]  # fmt: skip
    steps = json.loads(peakline("steps", PAIR[0], "--json").out)
    assert result["before"]["times"] == steps["times"]
    assert result["before"]["steps"] == len(steps["steps"]) == 12
    means = [result[side]["times"]["mean_ps"] for side in ("before", "after")]
    assert sum(part["delta_ps"] for part in result["parts"]) == means[1] - means[0]
    assert [finding["kind"] for finding in result["findings"]["gone"]] == ["recompilation"]
    # What op_stats tells of the two profiles: 185,722,160,000 and 23,118,401,000 ps in 12 steps.
    assert result["ops"][0] == {
        "side": "host", "op": "jit(train)/jvp()/dot_general", "op_type": "dot_general",
        "change": "time", "was": None, "before_ps": 15476846667, "after_ps": 1926533417,
        "delta_ps": -13550313250, "before_runs": 2.0, "after_runs": 2.0,
        "before_ops": 1, "after_ops": 1, "text": "",
    }  # fmt: skip


def test_an_allocator_that_is_named_is_about_memory_alone(peakline):
    pair = [DATA / "programs/time" / f"{name}.xplane.pb.gz" for name in ("eager_loop", "slow_step")]
    run = peakline("diff", *pair, "--json", "--allocator", "bfc_cpu_allocator_for_gpu")
    assert json.loads(run.out)["time"] is None


@pytest.fixture
def evil(monkeypatch, tmp_path):
    """Two profiles with a step each, the later with an op of a hostile name besides."""
    readers = {}
    for name, ops in (("before.pb", ()), ("after.pb", (f"{EVIL}:matmul",))):
        step = [("train 0", 0, 100, 0), *((op, 10, 90, 0) for op in ops)]
        made = profile_of({HOST_PLANE: {"main": step}}, [("train 0", 0, 100)])
        path = tmp_path / name
        path.write_bytes(b"x")
        readers[str(path)] = made._reader
        made._reader.path = str(path)
    monkeypatch.setattr("peakline.formats.open_reader", lambda path, **_: readers[path])
    return tuple(readers)


def test_markdown(peakline):
    out = peakline("diff", *PAIR, "--markdown").out
    assert out.startswith("### What changed\n\nBefore: `")
    lines = out.splitlines()
    assert "| step time (median) | 220.504 ms | 5.712 ms | -214.792 ms (-97.4%) |" in lines
    assert "- `before: no memory events in this profile`" in lines
    assert "| -245.837 ms | 245.837 ms | 0 ns | compilation |" in lines
    assert (
        "| -13.550 ms | 15.477 ms | 1.927 ms | host | `jit(train)/jvp()/dot_general` |  |" in lines
    )
    assert lines.count("<details>") == lines.count("</details>") == 7
    assert sum("of <code>jit" in line and line.startswith("<summary>") for line in lines) == 4


def test_a_profile_and_itself_in_markdown(peakline):
    assert peakline("diff", PAIR[0], PAIR[0], "--markdown").out.endswith("\n\nNothing changed.\n")


def test_hostile_names_are_shown_as_text_of_diff_time(peakline, evil):
    assert "\x1b" not in peakline("diff", *evil).out
    out = peakline("diff", *evil, "--markdown").out
    assert "\x1b" not in out
    assert "<b>" not in out
    assert "@me" not in out
    (row,) = [line for line in out.splitlines() if "me" in line and line.startswith("| +")]
    assert row.count("|") == 7


def test_json_and_markdown_exclude_each_other(peakline):
    run = peakline("diff", *PAIR, "--json", "--markdown")
    assert (run.code, run.out) == (2, "")
    assert "--json or --markdown, not both" in run.err


def train(batch, *more, name="jit_train", number=1):
    return program(
        name,
        value(PARAMETER, "x", (batch, 256)),
        value(OUTPUT, "jit(train)/dot_general", (256, 256), line=12),
        *more,
        number=number,
    )


@pytest.fixture
def two_of_diff_programs(tmp_path):
    one = value(TEMPORARY, "jit(train)/tanh", (64, 256), line=14)
    before = dump(tmp_path / "before", train(64, one),
                  program("jit_old", value(OUTPUT, "y", (8, 256)), number=2),
                  program("jit_same", value(OUTPUT, "z", (8, 256)), number=3))  # fmt: skip
    sort = value(TEMPORARY, "jit(train)/sort", (512, 256), line=20)
    after = dump(tmp_path / "after", train(128, sort, number=7),
                 program("jit_new", value(OUTPUT, "y", (16, 256)), number=2),
                 program("jit_same", value(OUTPUT, "z", (8, 256)), number=4))  # fmt: skip
    return before, after


def test_the_screen_of_diff_programs(peakline, two_of_diff_programs):
    before, after = two_of_diff_programs
    run = peakline("diff", before, after)
    assert (run.code, run.err) == (0, "")
    heads = "CHANGE    BEFORE      AFTER  OP                           REGION     TYPE  SHAPE"
    assert (
        run.out
        == f"""\
compiled programs: largest peak +512.0 KiB (+133.3%)
before  {before} (hlo_dump)
after   {after} (hlo_dump)

before: no memory events in this profile

after: no memory events in this profile

compiled programs
  largest peak  384.0 KiB -> 896.0 KiB, +512.0 KiB (+133.3%)

  what each needs
      CHANGE     BEFORE      AFTER  PROGRAM       WHAT HAPPENED
  +512.0 KiB  384.0 KiB  896.0 KiB  jit_train(7)
   +16.0 KiB              16.0 KiB  jit_new(2)    new
    -8.0 KiB    8.0 KiB             jit_old(2)    gone

jit_train(7)
  peak              384.0 KiB -> 896.0 KiB, +512.0 KiB (+133.3%)
  arguments         64.0 KiB -> 128.0 KiB, +64.0 KiB (+100.0%)
  temporaries       64.0 KiB -> 512.0 KiB, +448.0 KiB (+700.0%)
  flops             81.9 k -> 197 k, +115 k (+140.0%)
  read and written  320.0 KiB -> 768.0 KiB, +448.0 KiB (+140.0%)

  what changed at the peak
      {heads}       WHAT HAPPENED
  +512.0 KiB       0 B  512.0 KiB  jit(train)/sort model.py:20  temporary  f32   [512, 256]  new
   -64.0 KiB  64.0 KiB        0 B  jit(train)/tanh model.py:14  temporary  f32   [64, 256]   gone
   +64.0 KiB  64.0 KiB  128.0 KiB  x                            parameter  f32   [128, 256]  \
same op, [64, 256] -> [128, 256]
"""
    )


def test_the_json_adds_up(peakline, two_of_diff_programs):
    document = json.loads(peakline("diff", *two_of_diff_programs, "--json").out)
    programs = {one["module"]: one for one in document["programs"]}
    assert list(programs) == ["jit_train", "jit_new", "jit_old", "jit_same"]
    train = programs["jit_train"]
    assert train["peak_delta_bytes"] == 512 * 1024
    assert sum(row["delta_bytes"] for row in train["groups"]) == train["peak_delta_bytes"]
    assert {row["op"]: row["change"] for row in train["groups"]} == {
        "jit(train)/sort model.py:20": "new",
        "jit(train)/tanh model.py:14": "gone",
        "x": "shape",
    }
    assert (train["before"]["program_id"], train["after"]["program_id"]) == (1, 7)
    assert (programs["jit_new"]["before"], programs["jit_old"]["after"]) == (None, None)
    assert programs["jit_same"]["groups"] == []
    with (
        package.open(two_of_diff_programs[0]) as before,
        package.open(two_of_diff_programs[1]) as after,
    ):
        result = package.diff(before, after)
    assert [one.as_json() for one in result.programs] == document["programs"]


def test_markdown_folds_the_details(peakline, two_of_diff_programs):
    text = peakline("diff", *two_of_diff_programs, "--markdown").out
    assert "| peak, `jit_train(7)` | 384.0 KiB | 896.0 KiB | +512.0 KiB (+133.3%) |" in text
    assert (
        "<summary>What changed at the peak of <code>jit&#95;train&#40;7&#41;</code></summary>"
        in text
    )
    assert "`jit(train)/sort model.py:20`" in text


def test_nothing_changed_of_diff_programs(peakline, two_of_diff_programs):
    assert peakline("diff", two_of_diff_programs[0], two_of_diff_programs[0]).out.startswith(
        "nothing changed\n"
    )


def test_a_program_against_a_profile_without(peakline, two_of_diff_programs, root):
    other = root / "tests" / "data" / "programs" / "leak_list.xplane.pb.gz"
    run = peakline("diff", other, two_of_diff_programs[0])
    assert (run.code, run.err) == (0, "")
    assert "\ncompiled programs\n  programs  0 -> 3\n" in run.out
    assert "jit_old" not in run.out


def test_an_allocator_leaves_programs_out(peakline, root, two_of_diff_programs):
    path = root / "tests" / "data" / "programs" / "leak_list.xplane.pb.gz"
    run = peakline(
        "diff", path, two_of_diff_programs[0], "--allocator", "bfc_cpu_allocator_for_gpu", "--json"
    )
    assert json.loads(run.out)["programs"] == []


def state(name, number=None, peak=None):
    return ProgramState(name, number, peak)


def test_several_of_one_name_go_by_what_they_need_then_by_number():
    before = [state("f", 1, 10), state("f", 3, 30), state("f", 2, 20)]
    after = [state("f", 5, 25), state("f", 4, 30)]
    pairs = match_programs(before, after)
    named = {(one and one.program_id, other and other.program_id) for one, other in pairs}
    # 30 bytes are 30 bytes; of the others the first numbers.
    assert named == {(3, 4), (1, 5), (2, None)}


def test_names_that_differ_in_numbers_alone_are_one_only_where_nothing_else_could_be_meant():
    pairs = match_programs([state("step_12_Xla", 1, 5)], [state("step_98_Xla", 2, 6)])
    assert [(one.name, other.name) for one, other in pairs] == [("step_12_Xla", "step_98_Xla")]
    both = [state("step_12_Xla", 1, 5), state("step_13_Xla", 2, 5)]
    assert all(None in pair for pair in match_programs(both, [state("step_98_Xla", 2, 6)]))


def test_two_equal_programs_are_two():
    same = [state("f", 1, 10), state("f", 1, 10)]
    assert len(match_programs(same, same)) == 2
    assert sum(None in pair for pair in match_programs(same, same[:1])) == 1
