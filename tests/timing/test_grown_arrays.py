"""Arrays that ``torch.cat`` copies to add a little to them, in traces made by hand."""

from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened

TOKENS, CALLS = 6, 2


def decoding(shapes, *, cut=None, number=None):
    """Six steps of 100 us, in each two joins of 30 us of the ``shapes`` of a step, each after a
    slice of an array of the shape ``cut``.
    """
    rows = []
    for step in range(TOKENS):
        at = 100 * step
        rows.append(event("X", at, f"ProfilerStep#{step}", dur=100, cat="user_annotation"))
        rows.append(event("X", at + 1, "serve.py(7): attend", dur=90, cat="python_function"))
        for place in range(CALLS):
            begin = at + 5 + 40 * place
            if cut:
                args = {"Input Dims": [cut, [], [], [], []]}
                rows.append(event("X", begin, "aten::slice", dur=1, cat="cpu_op", args=args))
            args = {"Input Dims": [shapes(step), []]}
            args |= {} if number is None else {"Sequence number": number + step}
            rows.append(event("X", begin + 2, "aten::cat", dur=30, cat="cpu_op", args=args))
            rows.append(event("X", begin + 33, "aten::mm", dur=5, cat="cpu_op"))
    return rows


def growing(step):
    return [[2, 64 + step, 8], [2, 1, 8]]


def shifted(_step):
    return [[2, 63, 8], [2, 1, 8]]


def joins(tmp_path, rows):
    with opened(tmp_path, rows) as profile:
        (finding,) = [one for one in profile.time().findings if one.kind == "expensive_op"]
        return finding


@each_row(
    "given, array", [({"shapes": growing}, [2, 69, 8]),
                     ({"shapes": shifted, "cut": [2, 64, 8]}, [2, 63, 8])],
)  # fmt: skip
def test_a_cache_that_is_copied_for_each_token(tmp_path, given, array):
    finding = joins(tmp_path, decoding(**given))
    evidence = finding.evidence
    assert (evidence["shape"], evidence["added"]) == (str(array), "[2, 1, 8]")
    assert evidence["function"] == "attend"
    assert "in place" in finding.suggestion
    share = CALLS * 30 / 100
    assert abs(evidence["gain_share"] - 0.7 * share) < 1e-3
    assert abs(evidence["most_gain_share"] - 1.3 * share) < 1e-3


@each_row("given", [
    {"shapes": shifted},  # a token of its class before the others: nothing was cut
    {"shapes": growing, "number": 1},  # a gradient flows through it
    {"shapes": lambda _step: [[2, 64, 8], [2, 64, 8]]},  # two halves
])  # fmt: skip
def test_other_joins_are_no_growing_arrays(tmp_path, given):
    evidence = joins(tmp_path, decoding(**given)).evidence
    assert "added" not in evidence
    assert abs(evidence["gain_share"] - CALLS * 30 / 100) < 1e-3
