"""``peakline programs``, and programs that lie elsewhere or beside a profile."""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.memory.hlo_programs import OUTPUT, PARAMETER, TEMPORARY, dump, program, value

import peakline as package
from peakline.document import chosen_programs, program_memory, programs_document
from peakline.errors import InputError
from peakline.findings import failed_programs
from peakline.hlo.cost import cost_program
from peakline.schema import HloProto

DATA = Path(__file__).parents[1] / "data"
DUMPED = DATA / "hlo"
KIB = 2**10


@pytest.fixture
def two(tmp_path):
    """A program of four values, and one of another name and size."""
    train = program(
        "jit_train",
        value(PARAMETER, "x", (64, 256)),
        value(TEMPORARY, "jit(train)/layer/tanh", (128, 256), line=14),
        value(TEMPORARY, "jit(train)/layer/sort", (64, 256), line=20),
        value(OUTPUT, "jit(train)/sum", (32, 256), line=30),
        number=6,
    )
    return dump(tmp_path / "dump", train, program("jit_one", value(OUTPUT, "", (256,)), number=7))


def test_the_list(peakline, two):
    run = peakline("programs", two)
    assert (run.code, run.err) == (0, "")
    assert (
        run.out
        == f"""\
2 compiled programs; jit_train(6) needs most, 288.0 KiB
{two} (hlo_dump)

       PEAK  ARGUMENTS   OUTPUTS  TEMPORARIES  CONSTANTS   FLOPS      MOVED  PROGRAM
  288.0 KiB   64.0 KiB  32.0 KiB    192.0 KiB        0 B  57.3 k  224.0 KiB  jit_train(6)
    1.0 KiB        0 B   1.0 KiB          0 B        0 B     256    1.0 KiB  jit_one(7)

one program in full: --module NAME
"""
    )


@pytest.mark.parametrize("name", ["jit_train", "jit_train(6)", "6"])
def test_one_program(peakline, two, name):
    run = peakline("programs", two, "--module", name)
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith(f"jit_train(6) needs 288.0 KiB\n{two} (hlo_dump)\n\n  peak")
    assert "jit_one" not in run.out
    words = [line.split() for line in run.out.splitlines()]
    assert ["128.0", "KiB", "44.5%", "temporary", "f32[128,256]", "jit(train)/layer/tanh",
            "model.py:14", "negate.3"] in words  # fmt: skip
    # By scope and by line.
    assert ["192.0", "KiB", "66.7%", "2", "jit(train)/layer"] in words
    assert ["128.0", "KiB", "44.4%", "1", "model.py:14"] in words


def test_so_many_rows(peakline, two):
    assert "\n  and 1 more program\n" in peakline("programs", two, "--top", 1).out
    run = peakline("programs", two, "--module", "6", "--top", 2)
    assert "\n  and 2 more values, 96.0 KiB\n" in run.out
    assert peakline("programs", two, "--top", 0).code == 2


def test_the_json(peakline, two):
    run = peakline("programs", two, "--json")
    assert (run.code, run.err) == (0, "")
    train, one = json.loads(run.out)["modules"]
    assert (one["module"], one["program_id"], one["peak_bytes"]) == ("jit_one", 7, KIB)
    sizes = {name: train[name] for name in train if name.endswith("_bytes")}
    assert sizes == {
        "peak_bytes": 288 * KIB, "argument_bytes": 64 * KIB, "output_bytes": 32 * KIB,
        "temporary_bytes": 192 * KIB, "alias_bytes": 0, "generated_code_bytes": None,
        "constant_bytes": 0, "thread_local_bytes": 0, "host_bytes": 0, "embedded_constant_bytes": 0,
        "heap_bytes": 192 * KIB, "heap_live_bytes": 192 * KIB, "padding_bytes": 0,
    }  # fmt: skip
    assert (train["peak_found_by"], train["backend"], train["runs"]) == ("heap trace", "cpu", None)
    assert sum(row["bytes"] for row in train["peak_buffers"]) == train["peak_bytes"]
    assert [row["bytes"] // KIB for row in train["peak_buffers"]] == [128, 64, 64, 32]
    (listed,) = json.loads(peakline("programs", two, "--module", "6", "--top", 1, "--json").out)[
        "modules"
    ]
    assert listed["peak_buffers"] == train["peak_buffers"][:1]


def test_the_json_of_programs_that_jax_compiled(peakline):
    result = json.loads(peakline("programs", DUMPED, "--json").out)["modules"]
    assert len(result) == 5
    peaks = [one["peak_bytes"] for one in result]
    assert peaks == sorted(peaks, reverse=True)
    for one in result:
        (path,) = DUMPED.glob(f"module_{one['program_id']:04}.*")
        content = path.read_bytes()
        assert HloProto.FromString(content).hlo_module.name == one["module"]
        total = cost_program(content).total
        assert one["flops"] == pytest.approx(total.flops)
        assert one["bytes_accessed"] == pytest.approx(total.bytes_accessed)
        assert sum(row["bytes"] for row in one["peak_buffers"]) == one["peak_bytes"]


def test_a_program_that_is_not_there(peakline, two, sessions):
    run = peakline("programs", two, "--module", "jit_tr")
    assert (run.code, run.out) == (3, "")
    meant = "did you mean 'jit_train(6)'? there is: jit_train(6), jit_one(7)"
    assert run.err == f"peakline: {two}: no program 'jit_tr'; {meant}\n"
    run = peakline("programs", sessions / "tf2_cnn", "--module", "x")
    assert (run.code, run.err.count("\n")) == (3, 1)
    assert run.err.endswith(": no compiled programs\n")


def test_a_name_that_several_have(peakline, tmp_path):
    same = [program("jit_f", value(OUTPUT, "", (256,)), number=n) for n in (1, 2)]
    path = dump(tmp_path / "dump", *same)
    run = peakline("programs", path, "--module", "jit_f")
    assert (run.code, run.out) == (2, "")
    assert run.err.endswith("2 programs 'jit_f'; name one: jit_f(1), jit_f(2)\n")
    one = peakline("programs", path, "--module", "jit_f(2)").out
    assert one.startswith("jit_f(2) needs 1.0 KiB\n")


def test_a_profile_without_programs(peakline, sessions):
    run = peakline("programs", sessions / "tf2_cnn")
    assert (run.code, run.err) == (0, "")
    assert run.out.endswith("\n\nno compiled programs in this profile\n")


def on_terminal(columns, *words):
    """What the program writes on a terminal of so many columns, without its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    unset = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    with subprocess.Popen(
        [sys.executable, "-m", "peakline", *map(str, words)],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={name: text for name, text in os.environ.items() if name not in unset}
        | {"TERM": "xterm"},
    ) as process:
        os.close(theirs)
        result = b""
        try:
            while part := os.read(ours, 4096):
                result += part
        except OSError:
            # The other side is closed.
            pass
        os.close(ours)
        assert process.stderr.read() == b""
    assert process.returncode == 0
    return re.sub(r"\x1b\[[\d;]*m", "", result.decode().replace("\r\n", "\n"))


@pytest.mark.parametrize("words", [(), ("--module", "jit_donate_sgd"), ("--module", "12")])
def test_a_terminal_of_80_columns(words):
    text = on_terminal(80, "programs", DUMPED, *words)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80, text
    assert max(map(len, lines)) > 60
    assert re.fullmatch(r"\([A-Z, ]+ left out: 80 columns\)", lines.pop())
    # A narrow screen does without columns, not without rows.
    assert len(on_terminal(200, "programs", DUMPED, *words).splitlines()) == len(lines)


MIB = 2**20
XLA = "E0528 x.cc:1] RESOURCE_EXHAUSTED: Out of memory while trying to allocate {} bytes.\n"


@pytest.fixture
def text(tmp_path):
    def write(content):
        path = tmp_path / "oom.txt"
        path.write_text(content)
        return path

    return write


@pytest.fixture
def dumped(tmp_path):
    """A program with 2 MiB of temporaries, and two with an output of 1 MiB."""
    return dump(
        tmp_path / "dump",
        program("jit_train", value(PARAMETER, "x", (64, 256)),
                value(TEMPORARY, "jit(train)/tanh", (1024, 256), line=14),
                value(TEMPORARY, "jit(train)/sort", (1024, 256), line=20), number=6),
        program("jit_one", value(OUTPUT, "one", (1024, 256), line=2), number=7),
        program("jit_two", value(OUTPUT, "two", (1024, 256), line=3), number=8),
    )  # fmt: skip


def test_a_request_is_matched_to_the_temporaries_of_just_that_size(peakline, text, dumped):
    run = peakline("memory", text(XLA.format(2 * MIB)), "--programs", dumped)
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    first = lines.index(
        "jit_train(6) has an allocation of exactly 2.0 MiB (2,097,152 bytes), of its temporaries"
    )
    assert lines[first + 1] == "  when jit_train(6) needs most, 2.1 MiB, it has live"
    assert "jit(train)/sort  model.py:20" in lines[first + 3] + lines[first + 4]


def test_several_programs_with_that_size_are_all_named(peakline, text, dumped):
    path = text(XLA.format(MIB))
    assert (
        "\n2 programs have an allocation of exactly 1.0 MiB (1,048,576 bytes): jit_one(7), "
        "jit_two(8)\n" in peakline("memory", path, "--programs", dumped).out
    )
    document = json.loads(peakline("memory", path, "--programs", dumped, "--json").out)
    (failed,) = document["failed_programs"]
    assert (failed["matched_by"], failed["requested_bytes"], failed["report_id"]) == (
        "size",
        MIB,
        0,
    )
    assert [one["module"] for one in failed["programs"]] == ["jit_one", "jit_two"]
    assert failed["programs"][0]["allocation_kinds"] == ["output"]
    assert failed["programs"][1]["peak_buffers"][0]["source_line"] == 3


@each_row("size", [2 * MIB - 1, 2 * MIB + 1, 3 * MIB])
def test_a_size_that_no_allocation_has_is_no_match(peakline, text, dumped, size):
    run = peakline("memory", text(XLA.format(size)), "--programs", dumped)
    assert run.code == 0
    assert f"\nno compiled program has an allocation of {size / MIB:.1f} MiB ({size:,}" in run.out
    assert "jit_train" not in run.out


def test_what_is_not_listed_is_counted(peakline, text, dumped, monkeypatch):
    monkeypatch.setattr(failed_programs, "MOST_PROGRAMS", 1)
    monkeypatch.setattr(failed_programs, "MOST_MOMENTS", 2)
    monkeypatch.setattr(program_memory, "MOST_BUFFERS", 3)
    path = text("".join(XLA.format(size) for size in (MIB, 2 * MIB, 3 * MIB)))
    document = json.loads(peakline("memory", path, "--programs", dumped, "--json").out)
    one, two = document["failed_programs"]
    assert (len(one["programs"]), one["programs_left_out"], two["programs_left_out"]) == (1, 1, 0)
    listed = [*document["programs"], *one["programs"], *two["programs"]]
    counts = [(len(each["peak_buffers"]), each["peak_buffers_left_out"]) for each in listed]
    assert counts == [(3, 0), (0, 1), (0, 3)]
    (warning,) = document["warnings"]
    assert (warning["kind"], warning["count"]) == ("failures_left_out", 1)


def test_what_the_allocator_rounded_is_matched_where_the_text_gives_no_bytes(
    peakline, text, tmp_path
):
    # 1,048,580 bytes are 1.00MiB, and rounded up 1,048,832.
    dumped = dump(tmp_path / "odd", program("jit_odd", value(OUTPUT, "y", (262145,))))
    path = text(
        "2024-05-28 07:02:44.349554: W a/bfc_allocator.cc:482] Allocator (GPU_0_bfc) ran out of "
        "memory trying to allocate 1.00MiB (rounded to 1048832)requested by op \n"
    )
    out = peakline("memory", path, "--programs", dumped).out
    assert "\njit_odd(1) has an allocation of exactly 1.0 MiB (1,048,580 bytes), of its out" in out


def test_a_report_that_names_the_program_needs_no_size(peakline, text, dumped):
    path = text(
        "RESOURCE_EXHAUSTED: Error loading program 'jit_two': Attempting to reserve 29.50G at the "
        "bottom of memory. That was not possible. There are 147.64M free, 0B reserved.\n"
    )
    out = peakline("memory", path, "--programs", dumped).out
    assert "\nthe report names jit_two(8)\n  when jit_two(8) needs most, 1.0 MiB, it has" in out


def test_the_summary_says_it_in_a_line(peakline, text, dumped):
    out = peakline("summary", text(XLA.format(2 * MIB)), "--programs", dumped).out
    assert "memory  failed for         jit_train(6) has an allocation of exactly 2.0 MiB (2" in out


def test_without_programs_nothing_is_added(peakline, text):
    path = text(XLA.format(2 * MIB))
    assert "compiled program" not in peakline("memory", path).out
    assert json.loads(peakline("memory", path, "--json").out)["failed_programs"] == []


def test_the_programs_of_a_profile_are_replaced_and_found_by_their_numbers(
    peakline, sessions, tmp_path
):
    step = program("jit_train_step", value(OUTPUT, "huge", (1024, 1024), line=5), number=28)
    dumped = dump(tmp_path / "dump", step)
    out = peakline("memory", sessions / "jax_cpu", "--programs", dumped).out
    assert "  at least  4.0 MiB (4,194,304 bytes)\n" in out
    assert "  ran       10 runs, the first at " in out
    with package.open(sessions / "jax_cpu", programs=dumped) as profile:
        assert profile.sql("select name, runs from hlo_modules").to_pylist() == [
            {"name": "jit_train_step", "runs": 10}
        ]
        assert profile.columns("events").rows > 0


def test_a_log_beside_a_profile_with_programs(peakline, text, sessions):
    # 262,144 bytes are the temporaries of jit_train_step(28) and outputs of several others.
    run = peakline("memory", text(XLA.format(262144)), "--programs", sessions / "jax_cpu")
    assert "programs have an allocation of exactly 256.0 KiB (262,144 bytes): jit_train" in run.out


def test_what_has_no_programs_is_one_line(peakline, text, root):
    path = text(XLA.format(MIB))
    run = peakline("memory", path, "--programs", path)
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert "no compiled programs; a directory that XLA_FLAGS=" in run.err
    run = peakline("memory", path, "--programs", "-")
    assert (run.code, run.err.count("\n")) == (2, 1)
    run = peakline("summary", path, "--programs", path / "none")
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    with pytest.raises(InputError, match="no compiled programs"):
        package.open(path, programs=root / "tests" / "data" / "programs" / "leak_list.xplane.pb.gz")


def test_names_of_programs_are_shown_as_text(peakline, text, tmp_path):
    from peakline.schema import HloProto

    made = HloProto.FromString(program("f", value(OUTPUT, "y", (1024, 256))))
    made.hlo_module.name = "[red]\x1b[2J\n<b>"
    path = tmp_path / "f.hlo_proto.pb"
    path.write_bytes(made.SerializeToString())
    run = peakline("memory", text(XLA.format(MIB)), "--programs", path)
    assert (run.code, "\x1b" in run.out) == (0, False)
    assert "[red]\\x1b[2J" in run.out, run.out


def test_a_computed_peak_is_no_allocation(peakline, text, tmp_path):
    from peakline.schema import HloProto

    made = HloProto.FromString(program("jit_f", value(OUTPUT, "y", (1024, 256))))
    made.ClearField("buffer_assignment")
    path = tmp_path / "f.hlo_proto.pb"
    path.write_bytes(made.SerializeToString())
    assert "1.0 MiB" in peakline("programs", path).out
    out = peakline("memory", text(XLA.format(MIB)), "--programs", path).out
    assert "\nno compiled program has an allocation of 1.0 MiB (1,048,576 bytes)\n" in out


READ = "{}: the profile has no compiled programs; it is read with those dumped there"


@pytest.fixture
def both(sessions, tmp_path):
    """A copy of a session with a program dumped into its log directory."""

    def make(name, place=""):
        path = shutil.copytree(sessions / name, tmp_path / "both")
        (folder,) = path.glob(place) if place else (path,)
        dump(folder, program("jit_odd", value(TEMPORARY, "tanh", (1024, 256), line=14), number=6))
        return folder

    return make


SESSION = "plugins/profile/*"


@pytest.mark.parametrize("place", ["", SESSION])
def test_a_profile_without_programs_gets_those_dumped_beside_it(peakline, both, place):
    path = both("tf2_cnn", place)
    run = peakline("programs", path, "--json")
    assert (run.code, run.err.splitlines()) == (0, [f"peakline: {READ.format(path)}"])
    document = json.loads(run.out)
    assert [one["module"] for one in document["modules"]] == ["jit_odd"]
    assert document["profile"]["format"] == "xplane"
    # The profile answers too, and Python reads the same.
    assert "bfc_cpu_allocator_for_gpu" in peakline("memory", path).out
    with package.open(path) as profile:
        assert profile.sql("select name from hlo_modules").to_pylist() == [{"name": "jit_odd"}]
        assert profile.columns("allocator_events").rows > 0


def test_a_profile_with_programs_has_its_own(peakline, both):
    path = both("jax_cpu")
    run = peakline("programs", path)
    assert (run.code, run.err) == (0, "")
    assert "jit_train_step(28)" in run.out
    assert "jit_odd" not in run.out
    with package.open(path) as profile:
        assert "jit_odd" not in profile.table("hlo_modules")["name"].to_pylist()
    # Where they are wanted instead, the dump counts, not the profile beside it.
    run = peakline("memory", failed_log(path), "--programs", path)
    assert "jit_odd(6) has an allocation of exactly 1.0 MiB" in run.out


def failed_log(path):
    log = path / "train.log"
    log.write_text(
        "E0528 x.cc:1] RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1048576 bytes.\n"
    )
    return log


def test_a_log_beside_dumps_is_named_with_what_to_type(peakline, tmp_path):
    odd = program("jit_odd", value(TEMPORARY, "tanh", (1024, 256), line=14), number=6)
    path = dump(tmp_path / "a dump", odd)
    (path / "module_0006.jit_odd.thunks.txt").write_text("written by XLA")
    assert peakline("memory", path).err == ""
    log = failed_log(path)
    run = peakline("memory", path)
    words = f"peakline memory '{log}' --programs '{path}'"
    assert run.err == (
        f"peakline: {path}: only the dumped programs are read; a log beside them with its buffers: "
        f"{words}\n"
    )
    assert "needs    1.0 MiB" in run.out
    run = peakline("memory", log, "--programs", path)
    assert (run.code, run.err) == (0, "")
    assert "jit_odd(6) has an allocation of exactly 1.0 MiB" in run.out
    (path / "second.txt.gz").write_bytes(b"")
    assert "a log beside them (and 1 more)" in peakline("programs", path).err


def test_what_xprof_wrote_beside_a_profile_is_the_profile_s(peakline, both):
    path = both("tf2_cnn", SESSION)
    (module,) = path.glob("module_*")
    module.rename(path / "jit_odd(6).hlo_proto.pb")
    run = peakline("programs", path)
    assert (run.code, run.err) == (0, "")
    assert "jit_odd(6)" in run.out


CAPTURED = """HloModule jit_f, is_scheduled=true

%fused (p: f32[4096]) -> f32[4096] {
  %p = f32[4096]{0} parameter(0)
  %w = f32[4096]{0} constant({...})
  ROOT %a = f32[4096]{0} add(%p, %w)
}

ENTRY %main (x: f32[4096]) -> f32[4096] {
  %x = f32[4096]{0} parameter(0)
  %c = f32[4096]{0} constant({...})
  %m = f32[4096]{0} multiply(%x, %c)
  ROOT %f = f32[4096]{0} fusion(%m), kind=kLoop, calls=%fused
}
"""


def test_constants_are_said_also_those_in_fusions(peakline, tmp_path):
    """One array is in the program, one in the code of its fusion: the peak has only the first."""
    path = tmp_path / "program.txt"
    path.write_text(CAPTURED)
    [module] = json.loads(peakline("programs", path, "--json").out)["modules"]
    assert module["embedded_constant_bytes"] == 16384
    assert module["peak_bytes"] == 3 * 16384
    shown = peakline("programs", path).out
    assert "32.0 KiB, 16.0 KiB of it in the code of fusions, not in the peak" in shown


@each_row("name", ["jax_scan", "jax_fori_loop"])
def test_a_run_costs_what_the_steps_say_that_it_does(name):
    """Each step of these runs a program once, of which one turn of its loop is the least part."""
    path = DATA / "programs" / "steps" / f"{name}.xplane.pb.gz"
    with package.open(path) as profile:
        programs = programs_document(profile, chosen_programs(profile, None))["modules"]
        (ran,) = [one for one in programs if one["runs"]]
        said = profile.time()
        assert ran["runs"] == said.as_json()["number_of_steps"]
        assert said.utilisation.flops == ran["flops"]
        assert said.utilisation.bytes_accessed == ran["bytes_accessed"]
        rows = profile.table("hlo_modules").to_pylist()
        (one_turn,) = [row["flops"] for row in rows if row["name"] == ran["module"]]
        assert ran["flops"] > 2 * one_turn
