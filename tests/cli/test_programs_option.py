"""``--programs``: a failed allocation, or a profile, explained by programs that lie elsewhere."""

import json

import pytest
from tests.analysis.hlo_programs import OUTPUT, PARAMETER, TEMPORARY, dump, program, value
from tests.each_row import each_row

import peakline as package
from peakline.document import program_memory
from peakline.errors import InputError
from peakline.findings import failed_programs

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
