"""What the step of the peak adds up, and of which types the buffers at the peak are."""

import numpy as np
import pytest
from tests.analysis.histories import history, steps_at
from tests.analysis.records import alloc, free
from tests.analysis.stacks import of_kind, profile_with
from tests.each_row import each_row

from peakline.memory.marks import find_marks
from peakline.memory.origins.element_types import float64_rows
from peakline.memory.peak.buffers import buffers_at_peak
from peakline.memory.peak.copies import added_up, gradients

MIB = 1 << 20


def timed(rows, steps=5):
    """These records in each of some steps, and the steps."""
    every = [
        row | {"time_ps": len(rows) * n + at} for n in range(steps) for at, row in enumerate(rows)
    ]
    return every, steps_at(*range(0, len(rows) * steps + 1, len(rows)))


def loop(turns=6, *, op="logits", inner="hidden", together=True, numbered=False):
    """A loop: each turn makes a buffer that comes and goes, and one that stays for the step."""
    rows, stays = [], []
    for turn in range(turns):
        name = f"{op}_{turn}" if numbered and turn else op
        rows += [alloc(1, 64, op=inner, shape="[4]"), free(1)]
        rows.append(alloc(10 + turn, MIB, op=name, shape="[8]"))
        stays.append(free(10 + turn))
        if not together:
            rows += [alloc(2, 8, op="x"), free(2)]
    if together:
        return rows + stays
    # Between two of them other work is done, as a backward pass does.
    return rows + [one for end in stays for one in (end, *[alloc(3, 8, op="y"), free(3)] * 4)]


def found_in(rows, **options):
    every, steps = timed(rows)
    made = history(every)
    at_peak = buffers_at_peak(made, 0, find_marks(made, 0, steps), made.measured)
    return added_up(made, at_peak, **options)


def test_turns_of_a_loop_are_added_up():
    (found,) = found_in(loop())
    assert (found.rows.size, found.bytes, found.has_passes) == (6, 6 * MIB, False)


def test_turns_that_tensorflow_numbers_are_one_op():
    (found,) = found_in(loop(numbered=True))
    assert found.rows.size == 6


def test_what_goes_one_by_one_or_in_a_few_turns_is_not():
    assert found_in(loop(together=False)) == []
    assert found_in(loop(3)) == []
    # What is made at once is no loop.
    rows = [alloc(n, MIB, op="w", shape="[8]") for n in range(6)]
    assert found_in(rows + [free(n) for n in range(6)]) == []


def test_a_join_of_them_counts():
    rows = [alloc(n, MIB, op="w", shape="[8]") for n in range(6)]
    rows += [alloc(9, 6 * MIB, op="model/concat"), *(free(n) for n in range(6)), free(9)]
    (found,) = found_in(rows)
    assert (found.rows.size, found.bytes) == (7, 12 * MIB)


def tasks(number=5, *, weights=2, together=True, forward=True, scope="gradient_tape/"):
    """Turns of a forward and a backward pass, whose gradients are held for a sum of all."""
    rows, stays = [], []
    for turn in range(number):
        if forward:
            rows += [alloc(1, 64, op="hidden", shape="[4]"), free(1)]
        for weight in range(weights):
            key = 10 + turn * weights + weight
            rows.append(alloc(key, MIB >> weight, op=f"{scope}MatMul_{weight}", shape="[8]"))
            stays.append(free(key))
    between = [] if together else [alloc(2, 8, op="x"), free(2)]
    return rows + [one for end in stays for one in (end, *between)]


def gradients_found_in(rows):
    every, _ = timed(rows)
    backward = np.array(["MatMul" in row.get("op", "") for row in every])
    return [one for one in found_in(rows, is_backward=backward) if one.turns != one.rows.size]


def test_gradients_of_all_turns_are_added_up_together():
    (found,) = gradients_found_in(tasks())
    assert (found.turns, found.rows.size, found.bytes) == (5, 10, 5 * MIB * 3 // 2)
    assert found.has_passes


@each_row(
    "given",
    [
        # No list: in one backward pass, given back one by one, of layers whose ops have one name.
        {"forward": False},
        {"together": False},
        {"number": 3},
        {"scope": ""},
    ],
)
def test_what_are_no_gradients_of_turns(given):
    assert gradients_found_in(tasks(**given)) == []


def test_passes_between_them():
    rows = loop()
    every, _ = timed(rows)
    (found,) = found_in(rows, is_backward=np.array([row.get("op") == "hidden" for row in every]))
    assert found.has_passes
    # Where passes are known, and none ran between them, they are layers.
    assert found_in(rows, is_backward=(np.arange(len(every)) == 0)) == []


@each_row(
    ("op", "is_one"),
    [
        ("gradient_tape/model/MatMul", True),
        ("jit(step)/transpose(jvp(loss))/mul", True),
        ("gradients_1/add", True),
        ("model/gradient_norm", False),
        ("", False),
    ],
)
def test_gradients_by_their_scopes(op, is_one):
    assert gradients(history([alloc(1, 8, op=op), free(1)])).tolist() == [is_one, False]


def test_gradients_of_nothing():
    assert gradients(history([free(1)])).tolist() == [False]


def test_accumulated_in_step():
    every, steps = timed(loop())
    (finding,) = of_kind(profile_with(every, steps), "accumulated_in_step")
    # Without a backward pass on record each may be what a layer holds.
    assert finding.severity == "info"
    assert "or of each layer" in finding.title
    assert finding.evidence["count"] == 6
    assert (finding.evidence["held_bytes"], finding.evidence["saved_bytes"]) == (6 * MIB, 5 * MIB)
    assert (finding.evidence["op"], finding.evidence["shape"]) == ("logits", "[8]")
    # The twin reduces each in its turn; and one step alone may prepare the run.
    every, steps = timed([row for row in loop() if not 10 <= row["address"] < 20])
    assert of_kind(profile_with(every, steps), "accumulated_in_step") == []
    every, steps = timed(loop(), steps=1)
    assert of_kind(profile_with(every, steps), "accumulated_in_step") == []


@pytest.mark.parametrize("kind", ["double", "DT_DOUBLE", "float64", "complex128"])
def test_float64_memory(kind):
    rows = [alloc(1, 3 * MIB, op="x", data_type=kind), alloc(2, MIB, op="y", data_type="float")]
    (finding,) = of_kind(profile_with(rows), "float64_memory")
    assert finding.title.endswith(f"3.0 MiB of the peak are float64: x {kind} of 3.0 MiB")
    assert (finding.evidence["wide_bytes"], finding.evidence["saved_bytes"]) == (
        3 * MIB,
        3 * MIB // 2,
    )
    rows[0] |= {"data_type": "float"}
    assert of_kind(profile_with(rows), "float64_memory") == []
    little = [alloc(1, MIB, op="x", data_type=kind), alloc(2, 9 * MIB, op="y", data_type="float")]
    assert of_kind(profile_with(little), "float64_memory") == []


def test_records_without_a_signature_are_of_no_type():
    assert float64_rows(history([free(1)]), np.array([0]), None).tolist() == [False]
