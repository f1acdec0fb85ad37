import json

import pytest
from tests.analysis.records import alloc
from tests.each_row import each_row

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
