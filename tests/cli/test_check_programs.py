"""``peakline check`` holds compiled programs to a limit, and to a baseline."""

import json

import pytest
from tests.analysis.hlo_programs import OUTPUT, PARAMETER, TEMPORARY, dump, program, value
from tests.each_row import each_row

import peakline as package
from peakline.schema import HloProto

MIB = 2**20


def train(batch, number=1, line=12, name="jit_train"):
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
    return dump(tmp_path / "small", train(512), program("jit_one", value(OUTPUT, "one", (1,))))


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
    silent = HloProto.FromString(train(1, number=2, name="jit_other"))
    silent.ClearField("buffer_assignment")
    silent.hlo_module.ClearField("schedule")
    path = dump(tmp_path / "dump", train(512), silent.SerializeToString())
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
def test_a_baseline_of_any_form(peakline, tmp_path, small, form):
    baseline = small
    if form != "dump":
        words = ("check", small, "--max-program-peak", "1GiB") if form == "check" else (form, small)
        baseline = tmp_path / "baseline.json"
        baseline.write_text(peakline(*words, "--json").out)
    assert peakline("check", small, "--baseline", baseline).code == 0
    # The lines of code moved too.
    large = dump(tmp_path / "large", train(1024, line=20, number=3))
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
    baseline = dump(tmp_path / "baseline", train(512), *others[:2])
    after = dump(tmp_path / "after", train(512), *more, others[2])
    document = json.loads(peakline("check", after, "--baseline", baseline, "--json").out)
    found = {one["program"]: one["reason"] for one in document["checks"]}
    assert list(found) == ["jit_4(4)", "jit_2(2)"]
    assert "no such program in the baseline, where one needs 1.2 MiB at most" in found["jit_4(4)"]
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
    data = HloProto.FromString(train(512))
    path = tmp_path / "a.hlo_proto.pb"
    data.hlo_module.name = "[red]\x1b[2J`<b>\n"
    path.write_bytes(data.SerializeToString())
    summary = tmp_path / "summary.md"
    run = peakline("check", path, "--max-program-peak", "1KiB", "--summary", summary)
    assert (run.code, run.err.count("\n")) == (1, 1)
    assert "\x1b" not in run.out + run.err + summary.read_text()
    assert "[red]\\x1b[2J" in run.out
