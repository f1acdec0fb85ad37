"""``peakline programs``: the list, one program in full, JSON, a terminal of 80 columns."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.analysis.hlo_programs import OUTPUT, PARAMETER, TEMPORARY, dump, program, value

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

       PEAK  ARGUMENTS   OUTPUTS  TEMPORARIES   FLOPS      MOVED  PROGRAM
  288.0 KiB   64.0 KiB  32.0 KiB    192.0 KiB  57.3 k  224.0 KiB  jit_train(6)
    1.0 KiB        0 B   1.0 KiB          0 B     256    1.0 KiB  jit_one(7)

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
        "constant_bytes": 0, "thread_local_bytes": 0, "host_bytes": 0,
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
    found = json.loads(peakline("programs", DUMPED, "--json").out)["modules"]
    assert len(found) == 5
    peaks = [one["peak_bytes"] for one in found]
    assert peaks == sorted(peaks, reverse=True)
    for one in found:
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
        found = b""
        try:
            while part := os.read(ours, 4096):
                found += part
        except OSError:
            # The other side is closed.
            pass
        os.close(ours)
        assert process.stderr.read() == b""
    assert process.returncode == 0
    return re.sub(r"\x1b\[[\d;]*m", "", found.decode().replace("\r\n", "\n"))


@pytest.mark.parametrize("words", [(), ("--module", "jit_donate_sgd"), ("--module", "12")])
def test_a_terminal_of_80_columns(words):
    text = on_terminal(80, "programs", DUMPED, *words)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80, text
    assert max(map(len, lines)) > 60
    assert re.fullmatch(r"\([A-Z, ]+ left out: 80 columns\)", lines.pop())
    # A narrow screen does without columns, not without rows.
    assert len(on_terminal(200, "programs", DUMPED, *words).splitlines()) == len(lines)
