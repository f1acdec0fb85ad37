"""Work that grows from step to step and from turn to turn, in traces made by hand."""

from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened

NODE = "autograd::engine::evaluate_function: AddmmBackward0"


def steps_of(counts):
    """Steps with so many nodes of a backward pass each, of 10 us one after the other."""
    rows, time = [event("X", 0, "train.py(7): train", dur=10**6, cat="python_function")], 10
    for step, count in enumerate(counts):
        begin = time
        rows.append(event("X", time, "aten::linear", dur=20, cat="cpu_op"))
        time += 20
        for _ in range(count):
            rows.append(event("X", time, NODE, dur=10, cat="cpu_op"))
            rows.append(event("X", time + 1, "aten::mm", dur=8, cat="cpu_op"))
            time += 10
        rows.append(event("X", begin, f"ProfilerStep#{step}", dur=time - begin,
                          cat="user_annotation"))  # fmt: skip
    return rows


def growing(profile):
    return [one for one in profile.time().findings if one.kind == "growing_work"]


def test_a_state_that_is_never_detached(tmp_path):
    counts = [5 + 4 * step for step in range(8)]
    with opened(tmp_path, steps_of(counts)) as profile:
        (finding,) = growing(profile)
    evidence = finding.evidence
    assert (evidence["op"], evidence["function"], evidence["line"]) == ("aten::mm", "train", 7)
    assert (evidence["first_count"], evidence["last_count"]) == (1 + 2 * 5, 1 + 2 * 33)
    assert evidence["more_per_step"] == 8
    # Detached, each step runs the four nodes that it adds.
    wall = sum(20 + 10 * count for count in counts)
    saved = sum(10 * (count - 4) for count in counts) / wall
    assert abs(evidence["gain_share"] - saved) < 0.01
    assert evidence["most_gain_share"] >= evidence["gain_share"]


@each_row(
    "counts",
    [[9] * 8, [5, 9, 5, 9, 5, 9, 5, 9], [5, 6, 20, 21, 50, 51, 52], [40, 41, 42, 43, 44], [5, 9]],
)
def test_other_counts_are_no_growth(tmp_path, counts):
    with opened(tmp_path, steps_of(counts)) as profile:
        assert growing(profile) == []


def turns_of(rows, *, took):
    """Six steps, in each a product of so many rows per turn, which takes as long as ``took``."""
    result, time = [], 10
    for step in range(6):
        begin = time
        for turn, count in enumerate(rows):
            dims = {"Input Dims": [[2, count, 64], [128, 64], [128]]}
            result.append(event("X", time, "aten::linear", dur=took(turn), cat="cpu_op", args=dims))
            time += took(turn)
        result.append(event("X", begin, f"ProfilerStep#{step}", dur=time - begin,
                            cat="user_annotation"))  # fmt: skip
    return result


def test_a_sequence_without_a_cache(tmp_path):
    longer = turns_of(range(1, 21), took=lambda turn: 10 + 10 * turn)
    with opened(tmp_path, longer) as profile:
        (finding,) = growing(profile)
    assert (finding.evidence["first_rows"], finding.evidence["last_rows"]) == (2, 40)
    # The first three turns take 20 us in the middle; the last one has none after it.
    whole, more = sum(10 + 10 * n for n in range(20)), sum(10 * n - 10 for n in range(1, 19))
    assert abs(finding.evidence["most_gain_share"] - more / whole) < 0.02
    with opened(tmp_path, turns_of([1] * 20, took=lambda _: 10)) as profile:
        assert growing(profile) == []
