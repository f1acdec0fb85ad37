"""``peakline diff`` of compiled programs: what they need, what they cost, what is live."""

import json

import pytest
from tests.analysis.hlo_programs import OUTPUT, PARAMETER, TEMPORARY, dump, program, value

import peakline as package
from peakline.compare.programs import match_programs
from peakline.compare.state import ProgramState


def train(batch, *more, name="jit_train", number=1):
    return program(
        name,
        value(PARAMETER, "x", (batch, 256)),
        value(OUTPUT, "jit(train)/dot_general", (256, 256), line=12),
        *more,
        number=number,
    )


@pytest.fixture
def two(tmp_path):
    one = value(TEMPORARY, "jit(train)/tanh", (64, 256), line=14)
    before = dump(tmp_path / "before", train(64, one),
                  program("jit_old", value(OUTPUT, "y", (8, 256)), number=2),
                  program("jit_same", value(OUTPUT, "z", (8, 256)), number=3))  # fmt: skip
    sort = value(TEMPORARY, "jit(train)/sort", (512, 256), line=20)
    after = dump(tmp_path / "after", train(128, sort, number=7),
                 program("jit_new", value(OUTPUT, "y", (16, 256)), number=2),
                 program("jit_same", value(OUTPUT, "z", (8, 256)), number=4))  # fmt: skip
    return before, after


def test_the_screen(peakline, two):
    before, after = two
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


def test_the_json_adds_up(peakline, two):
    document = json.loads(peakline("diff", *two, "--json").out)
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
    with package.open(two[0]) as before, package.open(two[1]) as after:
        found = package.diff(before, after)
    assert [one.as_json() for one in found.programs] == document["programs"]


def test_markdown_folds_the_details(peakline, two):
    text = peakline("diff", *two, "--markdown").out
    assert "| peak, `jit_train(7)` | 384.0 KiB | 896.0 KiB | +512.0 KiB (+133.3%) |" in text
    assert "<summary>What changed at the peak of jit&#95;train&#40;7&#41;</summary>" in text
    assert "`jit(train)/sort model.py:20`" in text


def test_nothing_changed(peakline, two):
    assert peakline("diff", two[0], two[0]).out.startswith("nothing changed\n")


def test_a_program_against_a_profile_without(peakline, two, root):
    other = root / "tests" / "data" / "programs" / "leak_list.xplane.pb.gz"
    run = peakline("diff", other, two[0])
    assert (run.code, run.err) == (0, "")
    assert "\ncompiled programs\n  programs  0 -> 3\n" in run.out
    assert "jit_old" not in run.out


def test_an_allocator_leaves_programs_out(peakline, root, two):
    path = root / "tests" / "data" / "programs" / "leak_list.xplane.pb.gz"
    run = peakline("diff", path, two[0], "--allocator", "bfc_cpu_allocator_for_gpu", "--json")
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
