"""``peakline check``: limits, settings and time."""

import json
from pathlib import Path

import pytest
from tests.cli.made import made, step
from tests.each_row import each_row
from tests.memory.hlo_programs import OUTPUT, PARAMETER, TEMPORARY, dump, program, value
from tests.memory.records import alloc

import peakline as package
from peakline.schema import HloProto

ROWS = [
    alloc(1, 3 * 2**20, op="net/MatMul", region_type="output", data_type="float", shape="[3, 3]",
          allocator="GPU_0_bfc", in_use_bytes=3 * 2**20, fragmentation=0.25),
    alloc(1, 512, op="copy", allocator="xla_gpu_host_bfc"),
]  # fmt: skip


@pytest.fixture
def programs(root):
    return lambda name: root / "tests" / "data" / "programs" / f"{name}.xplane.pb.gz"


def test_limits_that_pass(peakline, opened):
    path = opened(ROWS)
    run = peakline("check", path, "--max-peak", "3MiB")
    assert (run.code, run.err) == (0, "")
    assert (
        run.out
        == f"""\
2 limits passed
{path} (fake)

RESULT  LIMIT  ALLOCATOR         MEASURED  ALLOWED
pass    peak   GPU_0_bfc          3.0 MiB  3.0 MiB
pass    peak   xla_gpu_host_bfc     512 B  3.0 MiB
"""
    )


def test_limits_that_fail(peakline, opened):
    path = opened(ROWS)
    run = peakline("check", path, "--max-peak", "1MiB", "--max-fragmentation", "20%",
                   "--allocator", "GPU_0_bfc")  # fmt: skip
    assert run.code == 1
    assert run.err == (
        f"peakline: {path}: GPU_0_bfc: peak: 3.0 MiB in use, 1.0 MiB allowed; largest: net/MatMul "
        "float [3, 3], 3.0 MiB (and 1 more)\n"
    )
    assert (
        run.out
        == f"""\
2 of 2 limits failed
{path} (fake)

RESULT  LIMIT          ALLOCATOR  MEASURED  ALLOWED
fail    peak           GPU_0_bfc   3.0 MiB  1.0 MiB
fail    fragmentation  GPU_0_bfc     25.0%    20.0%

fail: GPU_0_bfc: peak: 3.0 MiB in use, 1.0 MiB allowed; largest: net/MatMul float [3, 3], 3.0 MiB
     SIZE  COUNT  OP          REGION  TYPE   SHAPE
  3.0 MiB      1  net/MatMul  output  float  [3, 3]

fail: GPU_0_bfc: fragmentation: 25.0% of the free memory at the peak is not in its \
largest piece, 20.0% allowed
"""
    )


def test_the_json(peakline, opened):
    run = peakline("check", opened(ROWS), "--max-peak", "1MiB", "--json")
    assert (run.code, run.err.count("\n")) == (1, 1)
    document = json.loads(run.out)
    assert list(document) == [
        "profile", "passed", "checks", "allocators", "programs", "time", "limits_from", "warnings",
    ]  # fmt: skip
    assert document["passed"] is False
    assert [one["passed"] for one in document["checks"]] == [False, True]
    assert document["checks"][0]["measured"] == 3 * 2**20
    assert [one["peak_bytes"] for one in document["allocators"]] == [3 * 2**20, 512]


@each_row(
    ("options", "message"),
    [
        ((), "no limit is given"),
        (("--tolerance", "5%"), "no limit is given"),
        (("--max-peak", "1", "--tolerance", "5%"), "--tolerance needs a --baseline"),
        (("--max-peak", "much"), "'much' is no size"),
        (("--max-fragmentation", "30"), "'30' is no share; write 5% or 0.05"),
        (("--max-fragmentation", "-1"), "'-1' is no share"),
        (("--max-fragmentation", "nan"), "'nan' is no share"),
        (("--baseline", "-"), "--baseline cannot come from standard input"),
        (("--max-peak", "1", "--summary", "-"), "--summary needs a file"),
    ],
)
def test_usage_errors(peakline, opened, options, message):
    run = peakline("check", opened(ROWS), *options)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert message in run.err


@each_row(("text", "limit"), [("30%", 0.3), ("0.3", 0.3), (".3", 0.3), ("1", 1.0)])
def test_shares(peakline, opened, text, limit):
    run = peakline("check", opened(ROWS[:1]), "--max-fragmentation", text, "--json")
    assert (run.code, json.loads(run.out)["checks"][0]["limit"]) == (0, limit)


def test_an_unknown_allocator(peakline, opened):
    run = peakline("check", opened(ROWS), "--max-peak", "1", "--allocator", "tpu")
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert "there is: GPU_0_bfc, xla_gpu_host_bfc" in run.err


def test_a_profile_without_memory_does_not_pass(peakline, sessions):
    run = peakline("check", sessions / "jax_cpu", "--max-peak", "1GiB")
    assert run.code == 1
    assert "fail    peak   (no allocator)  not known  1.0 GiB" in run.out
    assert run.err.endswith(" jax.profiler.save_device_memory_profile\n")


def test_the_recorded_leak_and_its_twin(peakline, programs):
    options = ("--max-peak", "25MiB", "--max-growth-per-step", "64KiB")
    assert peakline("check", programs("leak_list_healthy"), *options).code == 0
    run = peakline("check", programs("leak_list"), *options)
    assert run.code == 1
    assert "fail    growth per step  bfc_cpu_allocator_for_gpu  768.0 KiB  64.0 KiB\n" in run.out
    assert "768.0 KiB  model/hidden/MatMul  output  float  [192, 1024]\n" in run.out


@each_row("form", ["profile", "check", "memory"])
def test_a_baseline_of_any_form(peakline, programs, tmp_path, form):
    baseline = programs("doubled_batch_healthy")
    if form != "profile":
        words = ("check", baseline, "--max-peak", "1GiB") if form == "check" else (form, baseline)
        written = tmp_path / "baseline.json"
        written.write_text(peakline(*words, "--json").out)
        baseline = written
    run = peakline("check", programs("doubled_batch_healthy"), "--baseline", baseline)
    assert (run.code, run.err) == (0, "")
    run = peakline("check", programs("doubled_batch"), "--baseline", baseline)
    assert run.code == 1
    assert "23.5 MiB in use, 18.2 MiB in the baseline (+29.2%), 19.1 MiB allowed" in run.err
    assert "same op, [192, 1024] -> [384, 1024]" in run.out
    run = peakline("check", programs("doubled_batch"), "--baseline", baseline, "--tolerance", "40%")
    assert run.code == 0


def test_a_baseline_that_cannot_be_read(peakline, programs, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('{"allocators": 3}')
    run = peakline("check", programs("leak_list"), "--baseline", bad)
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert "is no baseline that peakline check --json or memory --json wrote" in run.err
    run = peakline("check", programs("leak_list"), "--baseline", tmp_path / "none")
    assert (run.code, run.err.count("\n")) == (3, 1)


def test_the_summary_is_appended(peakline, opened, tmp_path):
    path, summary = opened(ROWS), tmp_path / "summary.md"
    words = ("check", path, "--summary", summary, "--max-peak")
    assert peakline(*words, "1GiB").code == 0
    first = summary.read_text(encoding="utf-8")
    assert first.startswith("### ✅ Memory: 2 limits passed\n")
    assert peakline(*words, "1KiB").code == 1
    both = summary.read_text(encoding="utf-8")
    assert both.startswith(f"{first}\n### ❌ Memory: 1 of 2 limits failed\n")
    assert "| 3.0 MiB | 1 | `net/MatMul` | `output` | `float` | `[3, 3]` |" in both
    summary.write_text("# Ours\n")
    peakline(*words, "1GiB")
    assert summary.read_text(encoding="utf-8") == f"# Ours\n\n{first}"


def test_what_a_summary_may_not_be_appended_to(peakline, opened, tmp_path):
    path = opened(ROWS)
    binary = tmp_path / "binary"
    binary.write_bytes(b"PK\0\0")
    for target, code, message in (
        (path, 2, "is the profile itself"),
        (binary, 2, "is no text"),
        (tmp_path, 3, "cannot be written"),
        (tmp_path / "none" / "x.md", 3, "cannot be written"),
    ):
        run = peakline("check", path, "--max-peak", "1GiB", "--summary", target)
        assert (run.code, run.err.count("\n")) == (code, 1)
        assert message in run.err
    assert (path.read_bytes(), binary.read_bytes()) == (b"x", b"PK\0\0")


def test_hostile_names_are_shown_as_text(peakline, opened):
    run = peakline(
        "check", opened([alloc(1, 99, op="[red]\x1b[2J\n", allocator="\x1b")]), "--max-peak", "1"
    )
    assert run.code == 1
    assert "\x1b" not in run.out + run.err
    assert run.err.count("\n") == 1
    assert "[red]\\x1b[2J\\n" in run.out


def test_strict(peakline, opened):
    path = opened(ROWS, losses={"allocator_events": ("truncated", "half", 3)})
    assert peakline("check", path, "--max-peak", "1GiB").code == 0
    run = peakline("check", path, "--max-peak", "1GiB", "--strict")
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)


def test_a_share_that_nothing_can_exceed_is_refused(peakline, opened):
    run = peakline("check", opened(ROWS), "--max-fragmentation", "150%")
    assert (run.code, run.out) == (2, "")
    assert "at most 100%" in run.err


def test_a_summary_without_a_folder_is_refused_before_anything_is_read(peakline, opened, tmp_path):
    path = opened(ROWS)
    run = peakline("check", path, "--max-peak", "1MiB", "--summary", tmp_path / "none" / "x.md")
    assert (run.code, run.out) == (3, "")
    assert "cannot be written: No such file or directory" in run.err


TABLE = "[tool.peakline.check]\n"
ROWS_OF_CHECK_SETTINGS = [alloc(1, 3 * 2**20, op="p", allocator="gpu", in_use_bytes=3 * 2**20)]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository whose folder ``deep/er`` is the working directory."""
    folder = tmp_path / "repository"
    (folder / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(folder / "deep" / "er")
    return folder


def test_the_next_pyproject_upward_that_has_limits_counts(peakline, opened, project):
    path = opened(ROWS_OF_CHECK_SETTINGS)
    (project / "pyproject.toml").write_text(f'{TABLE}max-peak = "4MB"\nmax_fragmentation = 0.5\n')
    (project / "deep" / "pyproject.toml").write_text('[project]\nname = "part"\n')
    run = peakline("check", path)
    assert (run.code, run.out.splitlines()[2].strip()) == (
        0,
        f"limits from {project}/pyproject.toml [tool.peakline.check]: max-peak, max-fragmentation",
    )
    assert "pass    peak           gpu          3.1 MB   4.0 MB" in run.out


def test_the_command_line_wins(peakline, opened, project):
    (project / "pyproject.toml").write_text(f'{TABLE}max-peak = "1MiB"\nmax-limit = "1TB"\n')
    run = peakline("check", opened(ROWS_OF_CHECK_SETTINGS), "--max-peak", "3MiB", "--json")
    assert json.loads(run.out)["checks"][0]["limit"] == 3 * 2**20
    assert json.loads(run.out)["limits_from"] == {
        "max-peak": "command line",
        "max-limit": str(project / "pyproject.toml"),
    }
    assert (
        peakline("check", opened(ROWS_OF_CHECK_SETTINGS), "--max-peak", "3MiB", "--no-config").code
        == 0
    )


def test_a_file_of_its_own(peakline, opened, project):
    (project / "deep" / "er" / "gate.toml").write_text("max-peak = 3145728\n")
    run = peakline("check", opened(ROWS_OF_CHECK_SETTINGS), "--config", "gate.toml")
    assert (run.code, run.out.splitlines()[2].strip()) == (0, "limits from gate.toml: max-peak")


def test_a_baseline_in_a_file_is_found_from_there(peakline, opened, project):
    path = opened(ROWS_OF_CHECK_SETTINGS)
    (project / "pyproject.toml").write_text(f'{TABLE}baseline = "ci/figures.json"\n')
    (project / "ci").mkdir()
    assert peakline("check", path, "--update-baseline").code == 0
    assert (project / "ci" / "figures.json").is_file()
    run = peakline("check", path)
    assert (run.code, "BASELINE" in run.out) == (0, True)


@each_row(
    ("text", "message"),
    [
        (f'{TABLE}max-peek = "1GB"\n', "has no key 'max-peek'; did you mean max-peak?"),
        (f"{TABLE}colour = 1\n", "has no key 'colour'; there is: max-peak,"),
        (f'{TABLE}max-peak = "much"\n', "max-peak: 'much' is no size"),
        (f"{TABLE}max-peak = true\n", "max-peak is a text or a number, not True"),
        (f"{TABLE}max-step-time = 150\n", "max-step-time: '150' is no time"),
        (f'{TABLE}max-peak = ["1"]\n', "max-peak is a text or a number"),
        (TABLE, "no limit is given, neither by"),
    ],
)
def test_a_file_that_says_nothing_sensible_is_refused(peakline, opened, project, text, message):
    (project / "pyproject.toml").write_text(text)
    run = peakline("check", opened(ROWS_OF_CHECK_SETTINGS))
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert message in run.err


@pytest.mark.usefixtures("project")
def test_a_file_that_cannot_be_read(peakline, opened):
    path = opened(ROWS_OF_CHECK_SETTINGS)
    assert peakline("check", path, "--config", "none.toml").err == (
        "peakline: none.toml: no such file\n"
    )
    Path("bad.toml").write_text("max-peak = \n")
    run = peakline("check", path, "--config", "bad.toml")
    assert (run.code, run.err.count("\n")) == (3, 1)
    assert "bad.toml: is no TOML: " in run.err
    assert peakline("check", path, "--config", "bad.toml", "--no-config").code == 2


@pytest.fixture
def train(monkeypatch, tmp_path):
    """A profile of steps on a device, most of whose time goes to computing."""
    rows = [
        step(n, 100 * n, "gpu", compute=10 + n % 3, input_wait=2, compile=8 * (n == 0), idle=1)
        for n in range(8)
    ]
    return made(monkeypatch, tmp_path, step_breakdown=rows)


def checks_of(run):
    return {one["name"]: one for one in json.loads(run.out)["checks"]}


def test_the_figures_are_those_of_steps(peakline, train):
    steps = json.loads(peakline("steps", train, "--json").out)
    run = peakline(
        "check", train, "--max-step-time", "1s", "--max-p95-step-time", "1s", "--max-input-wait",
        "50%", "--max-compile", "50%", "--max-idle", "50%", "--json",
    )  # fmt: skip
    assert run.code == 0
    result = {name: check["measured"] for name, check in checks_of(run).items()}
    shares = {part["part"]: part["share"] for part in steps["parts"]}
    assert result == {
        "step time": steps["times"]["median_ps"],
        "p95 step time": steps["times"]["p95_ps"],
        "input wait": shares["input_wait"],
        "compile": shares["compile"],
        "idle": shares["idle"],
    }
    run = peakline("check", train, "--max-compile", "20ms", "--json")
    each = {part["part"]: part["per_step_ps"] for part in steps["parts"]}
    assert checks_of(run)["compile"]["measured"] == each["compile"]
    assert checks_of(run)["compile"]["measure"] == "ps"


def test_a_limit_that_fails_says_where_the_time_goes(peakline, train):
    run = peakline("check", train, "--max-step-time", "10ms", "--max-input-wait", "25%")
    assert run.code == 1
    assert (
        run.out
        == f"""\
1 of 2 limits failed
{train} (fake)

RESULT  LIMIT       OF      MEASURED  ALLOWED
fail    step time   steps  14.000 ms    10 ms
pass    input wait  steps      13.4%    25.0%

fail: steps: step time: the median step takes 14.000 ms, 10 ms allowed; most of it \
device compute, 73.1%
   PER STEP  SHARE
  10.875 ms  73.1%  device compute
   2.000 ms  13.4%  waiting for input
   1.000 ms   6.7%  compilation
   1.000 ms   6.7%  idle, cause unknown
"""
    )
    assert run.err == (
        f"peakline: {train}: step time: the median step takes 14.000 ms, 10 ms allowed; most of it "
        "device compute, 73.1%\n"
    )


@each_row(
    ("option", "limit"),
    [("max-step-time", "1s"), ("max-p95-step-time", "1s"), ("max-input-wait", "1"),
     ("max-compile", "1"), ("max-compile", "1s"), ("max-idle", "1")],
)  # fmt: skip
def test_without_steps_a_limit_fails_and_says_what_to_record(peakline, root, option, limit):
    heap = root / "tests" / "data" / "pprof" / "device_memory.pprof.pb.gz"
    run = peakline("check", heap, f"--{option}", limit)
    assert (run.code, run.err.count("\n")) == (1, 1)
    assert "cannot be measured: no time in this file: record the job with jax.profiler" in run.err


def test_a_profile_without_a_device_does_not_pass_as_not_idle(peakline, sessions):
    run = peakline("check", sessions / "jax_cpu", "--max-idle", "50%")
    assert run.code == 1
    assert "idle: cannot be measured: nothing of a device is in this profile; record on" in run.err


def test_the_summary_names_what_was_checked(peakline, train, tmp_path):
    page = tmp_path / "page.md"
    peakline("check", train, "--max-step-time", "1s", "--summary", page)
    assert page.read_text().startswith("### ✅ Time: 1 limit passed\n")


def test_the_library_has_the_same_limits(root):
    import peakline as library

    with library.open(root / "tests" / "data" / "sessions" / "jax_cpu") as profile:
        (one, other) = profile.check(max_step_ps=10**9, max_compile=0.5)
        assert (one.name, one.passed, other.name, other.passed) == (
            "step time", False, "compile", True,
        )  # fmt: skip
        assert one.measured == profile.time().times.median_ps


MIB = 2**20


def train_of_check_programs(batch, number=1, line=12, name="jit_train"):
    """Needs batch + 256 + batch KiB."""
    return program(
        name,
        value(PARAMETER, "x", (batch, 256)),
        value(OUTPUT, "jit(train)/dot_general", (256, 256), line=line),
        value(TEMPORARY, "jit(train)/tanh", (batch, 256), line=line + 2),
        number=number,
    )


@pytest.fixture
def small(tmp_path):
    return dump(
        tmp_path / "small",
        train_of_check_programs(512),
        program("jit_one", value(OUTPUT, "one", (1,))),
    )


def test_the_largest_program_within_the_limit(peakline, small):
    run = peakline("check", small, "--max-program-peak", "1280KiB")
    assert (run.code, run.err) == (0, "")
    assert (
        run.out
        == f"""\
1 limit passed
{small} (hlo_dump)

RESULT  LIMIT         OF              MEASURED     ALLOWED
pass    program peak  jit_train(1)  1280.0 KiB  1280.0 KiB
"""
    )


def test_a_program_that_needs_too_much_is_named_with_its_largest_values(peakline, small):
    run = peakline("check", small, "--max-program-peak", "1MiB")
    assert run.code == 1
    assert run.err == (
        f"peakline: {small}: jit_train(1): program peak: 1.2 MiB needed, 1.0 MiB allowed; "
        "largest: jit(train)/tanh model.py:14 f32 [512, 256], 512.0 KiB\n"
    )
    assert (
        "512.0 KiB      1  jit(train)/tanh model.py:14         temporary  f32   [512, 256]"
        in run.out
    )
    assert (
        "256.0 KiB      1  jit(train)/dot_general model.py:12  output     f32   [256, 256]"
        in run.out
    )


def test_without_programs_the_limit_fails_and_says_how_to_record(peakline, root):
    path = root / "tests" / "data" / "programs" / "leak_list.xplane.pb.gz"
    run = peakline("check", path, "--max-program-peak", "1GiB", "--max-peak", "1GiB")
    assert run.code == 1
    assert "pass    peak          bfc_cpu_allocator_for_gpu" in run.out
    assert "fail    program peak  (no program)               not known  1.0 GiB" in run.out
    assert (
        "no compiled programs in this profile; TensorFlow compiles functions with jit_com"
        in run.err
    )


def test_a_program_that_does_not_say_what_it_needs_is_no_silent_pass(peakline, tmp_path):
    silent = HloProto.FromString(train_of_check_programs(1, number=2, name="jit_other"))
    silent.ClearField("buffer_assignment")
    silent.hlo_module.ClearField("schedule")
    path = dump(tmp_path / "dump", train_of_check_programs(512), silent.SerializeToString())
    run = peakline("check", path, "--max-program-peak", "1GiB")
    assert run.code == 1
    assert "1 of 2 programs has no buffer assignment, jit_other(2) first" in run.err
    # What is known is too much already.
    assert "1.2 MiB needed" in peakline("check", path, "--max-program-peak", "1MiB").err


def test_the_profile_in_python(small):
    with package.open(small) as profile:
        (one,) = profile.check(max_program_peak_bytes=MIB)
        assert (one.name, one.program, one.allocator) == ("program peak", "jit_train(1)", "")
        assert (one.measured, one.passed, len(one.rows)) == (1280 * 1024, False, 3)
        assert profile.check() == ()


@each_row("form", ["dump", "check", "memory"])
def test_a_baseline_of_any_form_of_check_programs(peakline, tmp_path, small, form):
    baseline = small
    if form != "dump":
        words = ("check", small, "--max-program-peak", "1GiB") if form == "check" else (form, small)
        baseline = tmp_path / "baseline.json"
        baseline.write_text(peakline(*words, "--json").out)
    assert peakline("check", small, "--baseline", baseline).code == 0
    # The lines of code moved too.
    large = dump(tmp_path / "large", train_of_check_programs(1024, line=20, number=3))
    run = peakline("check", large, "--baseline", baseline)
    assert run.code == 1
    assert "2.2 MiB needed, 1.2 MiB in the baseline (+80.0%), 1.3 MiB allowed" in run.err
    assert "a dimension of 512 became 1024 in 2 groups of buffers: +1.0 MiB" in run.err
    assert "renamed from jit(train)/tanh model.py:14, [512, 256] -> [1024, 256]" in run.out
    assert peakline("check", large, "--baseline", baseline, "--tolerance", "80%").code == 0


def test_every_program_that_grew_fails_and_small_ones_may_grow(peakline, tmp_path):
    others = [program(f"jit_{n}", value(OUTPUT, "y", (size, 256)), number=n)
              for n, size in ((2, 40), (3, 8), (4, 2000))]  # fmt: skip
    more = [program(f"jit_{n}", value(OUTPUT, "y", (size, 256)), number=n)
            for n, size in ((2, 50), (3, 12))]  # fmt: skip
    baseline = dump(tmp_path / "baseline", train_of_check_programs(512), *others[:2])
    after = dump(tmp_path / "after", train_of_check_programs(512), *more, others[2])
    document = json.loads(peakline("check", after, "--baseline", baseline, "--json").out)
    result = {one["program"]: one["reason"] for one in document["checks"]}
    assert list(result) == ["jit_4(4)", "jit_2(2)"]
    assert "no such program in the baseline, where one needs 1.2 MiB at most" in result["jit_4(4)"]
    assert not any(one["passed"] for one in document["checks"])


def test_what_the_baseline_has_must_be_there(peakline, small, root):
    recorded = root / "tests" / "data" / "programs" / "leak_list.xplane.pb.gz"
    run = peakline("check", recorded, "--baseline", small)
    assert run.code == 1
    assert "program peak against the baseline: cannot be measured: no compiled programs" in run.err
    run = peakline("check", small, "--baseline", recorded)
    assert run.code == 1
    assert "peak against the baseline: cannot be measured: no memory events" in run.err


@each_row(
    "damage",
    ['{"allocators": [], "programs": 3}', '{"allocators": [], "programs": [{"module": 3}]}',
     '{"allocators": [], "programs": [{"module": "f", "peak_buffers": [{"bytes": "x"}]}]}',
     '{"allocators": [], "programs": [{"module": "f", "program_id": 1e99, "peak_buffers": []}]}'],
)  # fmt: skip
def test_a_damaged_baseline_is_one_line(peakline, tmp_path, small, damage):
    bad = tmp_path / "bad.json"
    bad.write_text(damage)
    run = peakline("check", small, "--baseline", bad)
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert "is no baseline" in run.err


def test_hostile_names_of_programs_are_shown_as_text(peakline, tmp_path):
    data = HloProto.FromString(train_of_check_programs(512))
    path = tmp_path / "a.hlo_proto.pb"
    data.hlo_module.name = "[red]\x1b[2J`<b>\n"
    path.write_bytes(data.SerializeToString())
    summary = tmp_path / "summary.md"
    run = peakline("check", path, "--max-program-peak", "1KiB", "--summary", summary)
    assert (run.code, run.err.count("\n")) == (1, 1)
    assert "\x1b" not in run.out + run.err + summary.read_text()
    assert "[red]\\x1b[2J" in run.out
