"""What advice on a program's memory estimates, against the program that follows it: JAX compiles
both, and says what each allocates.
"""

import pytest

import peakline
from peakline.hlo.advice import advice_of
from tests.conformance.test_xla_heap_peers import compile_programs

pytestmark = pytest.mark.conformance

TOLERANCE = {
    "donate_sgd": 0.0,
    "donate_reversed": 0.0,
    # XLA schedules otherwise once results lie in place.
    "donate_momentum": 0.06,
    "rematerialise_features": 0.0,
    # The loop over halves holds its operands and its results.
    "chunk_attention": 0.02,
    "chunk_heads": 0.10,
    "lower_precision_sorted": 0.0,
    "lower_precision_attention": 0.0,
    "lower_precision_gathered": 0.0,
}
"""By how much of what the program allocates the estimate may be wrong."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_programs("advised_jax.py", tmp_path_factory.mktemp("advised"))


def allocated(sizes, kind):
    if kind == "lower_precision":
        # Parameters and results are made smaller too, about which the advice says nothing.
        return sizes["temp"]
    return sizes["argument"] + sizes["output"] + sizes["temp"] - sizes["alias"]


def total(sizes):
    return sizes["argument"] + sizes["output"] + sizes["temp"] - sizes["alias"]


@pytest.mark.parametrize("name", TOLERANCE)
def test_following_it_saves_what_it_says(compiled, name):
    dumps, sizes = compiled
    kind = next(kind for kind in ("donate", "rematerialise", "chunk", "lower_precision")
                if name.startswith(kind))  # fmt: skip
    with peakline.open(dumps[name]) as profile:
        advice = next(one for one in advice_of(profile, 0) if one.kind == kind)
    saved = allocated(sizes[name], kind) - allocated(sizes[f"{name}_followed"], kind)
    assert saved > 0.05 * total(sizes[name])
    assert advice.bytes == pytest.approx(saved, abs=TOLERANCE[name] * total(sizes[name]))
    assert advice.rows[0]["bytes"] > 0


@pytest.mark.parametrize("name", TOLERANCE)
def test_what_was_followed_is_not_advised_again(compiled, name):
    dumps, _ = compiled
    with peakline.open(dumps[f"{name}_followed"]) as profile:
        kinds = [one.kind for one in advice_of(profile, 0)]
    if not name.startswith("chunk"):
        # What is computed in halves can be computed in quarters.
        assert not any(name.startswith(kind) for kind in kinds)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("none_donate_needed_later", "donate"),
        ("none_donate_other_type", "donate"),
        ("none_rematerialise_of_sorted", "rematerialise"),
    ],
)
def test_what_saves_nothing_is_not_advised(compiled, name, kind):
    dumps, sizes = compiled
    with peakline.open(dumps[name]) as profile:
        kinds = [one.kind for one in advice_of(profile, 0)]
    assert kind not in kinds
    assert total(sizes[f"{name}_followed"]) > 0.95 * total(sizes[name])
