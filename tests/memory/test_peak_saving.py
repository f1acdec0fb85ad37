"""The largest lever on a peak, as a finding."""

from tests.memory.records import alloc, free, of_kind, profile_with, steps_at

from peakline.findings.finding import Finding
from peakline.findings.overlaps import without_lesser_savings

MIB = 1 << 20


def finding(kind, saved, severity="warning", allocator="gpu"):
    return Finding(kind, severity, kind, {"allocator": allocator, "saved_bytes": saved}, "")


def shown(*findings):
    return [(one.kind, one.severity) for one in without_lesser_savings(findings)]


def test_the_largest_lever_leads():
    lever = finding("peak_saving", 44, "info")
    assert shown(lever, finding("rounding", 20)) == [("peak_saving", "info"), ("rounding", "info")]
    assert shown(lever, finding("rounding", 50)) == [("rounding", "warning")]
    assert shown(lever, finding("leak", 20)) == [("peak_saving", "info"), ("leak", "warning")]
    assert shown(lever, finding("leak", 22)) == [("leak", "warning")]
    assert shown(lever, finding("leak", 40, allocator="cpu"))[0] == ("peak_saving", "info")


def test_gradients_of_each_example_lie_between_the_free_pieces():
    examples, pieces = finding("per_example_gradients", 9), finding("fragmentation", 7)
    for one, op in ((examples, "aten::clone"), (pieces, "aten::clone")):
        one.evidence["op"] = op
    assert shown(examples, pieces) == [("per_example_gradients", "warning")]
    pieces.evidence["op"] = "aten::relu"
    assert len(shown(examples, pieces)) == 2


def test_activations_that_make_the_peak_are_a_finding():
    rows = [alloc(1, 4 * MIB, op="w", time_ps=0)]
    for step in range(4):
        at = 100 * step + 10
        rows += [alloc(10 + n, 6 * MIB, op=f"act{n}", time_ps=at + n) for n in range(4)]
        for turn in range(20):
            rows += [alloc(3, MIB, op="t", time_ps=at + 20 + 2 * turn),
                     free(3, time_ps=at + 21 + 2 * turn)]  # fmt: skip
        rows += [free(10 + n, time_ps=at + 70 + n) for n in (3, 2, 1, 0)]
    (result,) = of_kind(profile_with(rows, steps_at(0, 100, 200, 300, 400)), "peak_saving")
    assert result.severity == "info"
    # All four are there at once, of which one is needed at a time.
    assert result.evidence["peak_bytes"] == 29 * MIB
    assert 18 * MIB <= result.evidence["saved_bytes"] <= 24 * MIB
