"""Batches of input that are ready for later steps."""

from tests.analysis.records import alloc
from tests.analysis.stacks import of_kind, profile_with
from tests.each_row import each_row

MIB = 1 << 20
MAIN = ("main", "/me/train.py", 2)
MAKE = [("build", "/me/train.py", 8), MAIN]
PUT = [
    ("asarray", "/v/site-packages/jax/_src/numpy/array_constructors.py", 453),
    ("to_device", "/me/train.py", 63), ("prefetch", "/me/train.py", 30), MAIN,
]  # fmt: skip
SCALED = [("to_device", "/me/train.py", 62), ("prefetch", "/me/train.py", 30), MAIN]


def job(batches=16, labels=None, *, put=PUT, size=MIB, weight=MIB):
    """Batches of images, which are computed on the device, and of labels, which are put there."""
    count = batches if labels is None else labels
    rows = [alloc(0, weight, op="w", stack_id=0)]
    rows += [alloc(100 + n, size, op="images", stack_id=1) for n in range(batches)]
    rows += [alloc(200 + n, size // 4, op="labels", stack_id=2) for n in range(count)]
    return profile_with(rows, stacks=[MAKE, SCALED, put])


def test_many_batches():
    (finding,) = of_kind(job(), "batches_ahead")
    assert finding.severity == "warning"
    assert finding.title.endswith(
        "16 batches of input are in memory at once, 20.0 MiB of 21.0 MiB, put there by to_device "
        "(train.py:63)"
    )
    evidence = finding.evidence
    assert (evidence["batches"], evidence["saved_bytes"]) == (16, 20 * MIB * 14 // 16)


def test_half_of_the_peak_makes_it_a_warning():
    (finding,) = of_kind(job(weight=25 * MIB), "batches_ahead")
    assert finding.severity == "info"


@each_row(
    "given",
    [
        # Few, a small part, weights of a file (some once), and nothing that says that it is input.
        {"batches": 7},
        {"weight": 99 * MIB},
        {"labels": 1},
        {"put": MAKE},
        {"size": 1 << 16, "weight": 1},
    ],
)
def test_what_is_none(given):
    assert of_kind(job(**given), "batches_ahead") == []


def test_one_more_of_a_size_is_as_often():
    (finding,) = of_kind(job(batches=9, labels=8), "batches_ahead")
    assert finding.evidence["batches"] == 8
