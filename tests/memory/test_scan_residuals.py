"""What loops of compiled programs hold of each turn for their gradient."""

from tests.each_row import each_row
from tests.memory.hlo_programs import OUTPUT, PARAMETER, TEMPORARY, dump, program, value

import peakline

MIB = 1 << 20
TURNS, SIDES = 64, (64, 128, 128)
"""A value of 4 MiB: 64 KiB for each turn."""
LOOP = "jit(step)/jvp(Model)/while"


def findings_of(path):
    with peakline.open(path) as profile:
        return profile.memory().findings


def values(loop=LOOP, many=5, *more, sides=SIDES):
    stacked = (value(TEMPORARY, loop, sides, 12) for _ in range(many))
    return [value(PARAMETER, "w", (128, 128)), *stacked, value(OUTPUT, "g", (128, 128)), *more]


def test_values_of_each_turn_are_named_with_their_line(tmp_path):
    (finding,) = findings_of(dump(tmp_path, program("jit_step", *values())))
    need = 5 * 4 * MIB + 2 * 128 * 128 * 4
    assert finding.kind == "scan_residuals"
    assert finding.title.startswith("jit_step")
    assert "the 64 turns of a loop (jit(step)/jvp(Model)/while) hold 5 values each" in finding.title
    assert finding.title.endswith("made in model.py:12")
    assert "jax.checkpoint(body)" in finding.suggestion
    evidence = finding.evidence
    assert (evidence["bytes"], evidence["saved_bytes"]) == (20 * MIB, 16 * MIB)
    assert (evidence["least_saved_bytes"], evidence["peak_bytes"]) == (12 * MIB, need)


REMADE = "jit(step)/transpose(jvp())/while/body/closed_call/checkpoint/rematted_computation/dot"
OTHERS = {
    "the carry alone": values(LOOP, 2),
    "computed again": values(LOOP, 5, value(TEMPORARY, REMADE, (8, 8))),
    "a backward pass": values("jit(step)/transpose(jvp())/while"),
    "no gradient": values("jit(step)/while"),
    "little": values(LOOP, 5, sides=(64, 16, 16)),
    "not much of it": values(LOOP, 3, *(value(PARAMETER, f"v{n}", (1024, 4096)) for n in range(3))),
}


@each_row(("name", "made"), OTHERS.items())
def test_other_values_are_none(tmp_path, name, made):
    path = dump(tmp_path / name.replace(" ", "_"), program("jit_step", *made))
    assert "scan_residuals" not in {one.kind for one in findings_of(path)}


def test_square_values_of_a_loop_are_no_attention(tmp_path):
    """Without the loop's name the shape alone looks like scores of all pairs of positions."""
    for name, op in (("loop", LOOP), ("scores", "jit(step)/softmax")):
        made = values(op, sides=(64, 160, 160))
        [finding] = findings_of(dump(tmp_path / name, program("jit_step", *made)))
        assert (finding.kind, "attention" in finding.title) == (
            ("scan_residuals", False) if op == LOOP else ("huge_temporary", True)
        )
