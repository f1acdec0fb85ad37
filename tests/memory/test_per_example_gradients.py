"""Gradients of each example, in recordings of ``tests/programs/torch_gradients.py``."""

from pathlib import Path

from tests.each_row import each_row

import peakline

DATA = Path(__file__).parent.parent / "data/chrome_trace"
EXAMPLES, WEIGHTS = 8, 300 * 20 + 20
HEALTHY = "per_example_healthy"


def opened(name):
    return peakline.open(DATA / f"{name}.trace.json.gz")


@each_row("how, function", [("loop", "collect"), ("vmap", "all_at_once")])
def test_gradients_of_each_example_are_named(how, function):
    with opened(f"per_example_{how}") as profile:
        warnings = [one for one in profile.memory().findings if one.severity == "warning"]
        peak = profile.memory().allocators[0].peak_bytes
    (finding,) = [one for one in warnings if one.kind == "per_example_gradients"]
    evidence = finding.evidence
    assert (evidence["examples"], evidence["function"]) == (EXAMPLES, function)
    assert evidence["file"].endswith("torch_gradients.py")
    # What each example's gradients take, and a little beside them (the loss of the pass).
    assert EXAMPLES * WEIGHTS * 4 <= evidence["bytes"] <= 1.02 * EXAMPLES * WEIGHTS * 4
    with opened(HEALTHY) as profile:
        saved = peak - profile.memory().allocators[0].peak_bytes
    assert evidence["least_saved_bytes"] <= saved
    assert 0.9 * saved <= evidence["saved_bytes"] <= peak
    # `record_shapes` holds the tensors of transforms: that is no leak of the program.
    assert warnings == [finding]


@each_row("name", [HEALTHY, "per_example_ensemble"])
def test_one_pass_of_the_mean_loss_and_one_of_each_model_are_none(name):
    with opened(name) as profile:
        assert [one for one in profile.memory().findings if one.severity != "info"] == []
