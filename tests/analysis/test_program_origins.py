"""Ops of values that have none of their own: those of what reads them."""

from tests.analysis.timing.programs import Maker, f32

import peakline
from peakline.findings.program_values import with_readers
from peakline.timing.programs.answer import LiveBuffer, ProgramAnswer


def value(instruction):
    return LiveBuffer(instruction, "copy", "", "", None, 8, None, "f32[4]", "temporary")


def test_the_op_that_reads_a_copy(tmp_path):
    made = Maker()
    main = made.computation("main")
    x = made.add(main, "parameter", f32(4), name="x")
    copy = made.add(main, "copy", f32(4), x, name="copy.1")
    again = made.add(main, "copy", f32(4), copy, name="copy.2")
    reads = made.add(main, "negate", f32(4), again, name="negate.1")
    reads.metadata.op_name = "jit(f)/neg"
    reads.metadata.source_file, reads.metadata.source_line = "/me/train.py", 7
    made.add(main, "copy", f32(4), reads, name="copy.3")
    path = tmp_path / "some.hlo.pb"
    path.write_bytes(made.data)
    given = [value(name) for name in ("copy.1", "copy.2{}", "copy.3", "unknown")]
    with peakline.open(path) as profile:
        found = with_readers(profile, ProgramAnswer(profile, 0), given)
    assert [(one.op_name, one.source_line) for one in found] == [
        ("jit(f)/neg", 7), ("jit(f)/neg", 7), ("", None), ("", None)
    ]  # fmt: skip
