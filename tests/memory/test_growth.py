"""Growth from step to step, and the series it is seen in."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.memory.kinds import growth_findings
from tests.memory.records import alloc, free, history, profile_with, records, steps_at

from peakline.compare.comparison import profile_state
from peakline.compare.series import series_of
from peakline.memory.growth.grown import find_grown, signatures_held
from peakline.memory.growth.series import find_growth
from peakline.memory.marks import find_marks
from peakline.tables.tables import empty_columns
from reference.memory_history import buffers, in_use, live_bytes

KIB = 1024


def grow(rows, steps):
    made = history(rows)
    return made, find_growth(made, 0, find_marks(made, 0, steps))


def findings(rows, steps):
    made, growth = grow(rows, steps)
    return growth_findings(made, growth)


def training(count, chosen=None, *, capacity=None, release=None, work=100 * KIB, started=0):
    """``count`` steps that allocate and free ``work`` bytes; ``kept(step)`` lists what stays.

    ``release(step)`` says whether all that was kept is freed first. Each step is 20 ps long.
    """
    rows, held, address = [], [], 1000
    used = 10 * KIB

    def figures():
        return {} if capacity is None else {"in_use_bytes": used, "free_bytes": capacity - used}

    for step in range(count):
        here = []
        if release is not None and release(step):
            for place, size in held:
                used -= size
                here.append(free(place, **figures()))
            held = []
        size = work if step >= started else KIB
        used += size
        here.append(alloc(1, size, op="work", shape="[1]", step_id=step, **figures()))
        for more in chosen(step) if chosen else ():
            address += 1
            used += more["allocated_bytes"]
            held.append((address, more["allocated_bytes"]))
            here.append({"activity": "allocation", "address": address, **more, **figures()})
        used -= size
        here.append(free(1, **figures()))
        rows += [row | {"time_ps": 100 * step + n} for n, row in enumerate(here)]
    return rows, steps_at(*range(0, 100 * count + 1, 100))


def keep(size, op="hidden", shape="[4,4]"):
    return {"op": op, "shape": shape, "data_type": "float", "allocated_bytes": size}


def test_a_leak_is_named_with_its_rate_its_first_step_and_what_is_left():
    rows, steps = training(12, lambda _: [keep(8 * KIB)], capacity=1000 * KIB)
    (finding,) = findings(rows, steps)
    assert (finding.kind, finding.severity) == ("leak", "warning")
    evidence = finding.as_json()["evidence"]
    assert (evidence["op"], evidence["shape"]) == ("hidden", "[4, 4]")
    assert (evidence["bytes_per_step"], evidence["since_step"]) == (8 * KIB, 0)
    assert evidence["since_step_name"] == "train 0"
    peak = 10 * KIB + 100 * KIB + 12 * 8 * KIB
    assert evidence["peak_bytes"] == peak
    assert evidence["steps_left"] == (1000 * KIB - peak) // (8 * KIB)
    assert evidence["kept_bytes"] == 12 * 8 * KIB
    assert evidence["confidence"] > 0.99
    (row,) = evidence["rows"]
    assert (row["op"], row["bytes_per_step"], row["rises"]) == ("hidden", 8 * KIB, 12)
    assert "hidden float [4, 4]" in finding.title
    left = (1000 * KIB - peak) // (8 * KIB)
    assert finding.title.endswith(f"; the capacity is reached in about {left} more steps")


@each_row(("room", "said"), [(7, "; the capacity is reached now"), (9, "in about 1 more step")])
def test_a_leak_that_has_no_room_left_says_so(room, said):
    peak = (10 + 100 + 12 * 8) * KIB
    rows, steps = training(12, lambda _: [keep(8 * KIB)], capacity=peak + room * KIB)
    (finding,) = findings(rows, steps)
    assert finding.title.endswith(said)
    assert finding.evidence["steps_left"] == room // 8


@each_row(
    ("left", "said"),
    [(84_499, "in about 84,000 more steps"), (100_000, "in about 100,000 more steps"),
     (100_001, "[4, 4]")],
)  # fmt: skip
def test_a_forecast_has_two_digits_and_does_not_reach_far(left, said):
    peak = (10 + 100 + 12 * 8) * KIB
    rows, steps = training(12, lambda _: [keep(8 * KIB)], capacity=peak + left * 8 * KIB)
    (finding,) = findings(rows, steps)
    assert finding.title.endswith(said)
    assert finding.evidence["steps_left"] == left


def test_a_leak_of_every_tenth_step_is_told_with_its_mean():
    chosen = [keep(2000 * KIB), keep(256, "handle", "[]")]
    rows, steps = training(50, lambda step: chosen if step % 10 == 0 else [])
    (finding,) = findings(rows, steps)
    assert finding.title.endswith(
        ": about 200.0 KiB per step (2.0 MiB in 5 of 50 steps) more stay in memory since "
        "step 0 (train 0): hidden float [4, 4]"
    )
    # What is nothing beside it is neither counted nor a row.
    assert [row["op"] for row in finding.rows] == ["hidden"]
    assert finding.evidence["bytes_per_step"] == round(200.025 * KIB)


def test_constants_of_functions_that_are_traced_anew_are_told_as_such():
    made = keep(8 * KIB, "truediv/_0__cf__12", "") | {"data_type": ""}
    rows, steps = training(12, lambda step: [made | {"allocated_bytes": 8 * KIB + step}])
    (finding,) = findings(rows, steps)
    assert finding.title.endswith("since step 0 (train 0): truediv/_0__cf__12")
    assert "traced anew in each step" in finding.suggestion
    assert "`input_signature`" in finding.suggestion


def test_related_leaks_are_one_finding_the_largest_first():
    rows, steps = training(10, lambda _: [keep(2 * KIB, "loss", "[2]"), keep(8 * KIB, "hidden")])
    (finding,) = findings(rows, steps)
    assert [row["op"] for row in finding.rows] == ["hidden", "loss"]
    assert finding.evidence["bytes_per_step"] == 10 * KIB
    assert finding.evidence["steps_left"] is None


def test_an_op_whose_shapes_change_is_looked_at_as_a_whole():
    rows, steps = training(12, lambda step: [keep(8 * KIB + 64 * step, shape=f"[{step}]")])
    (finding,) = findings(rows, steps)
    assert (finding.evidence["op"], finding.evidence["shape"]) == ("hidden", "")
    assert finding.rows[0]["forms"] == 12


def test_one_buffer_made_anew_and_larger_each_step_is_a_leak():
    rows, steps = training(
        12, lambda step: [keep(8 * KIB * (step + 1), shape=f"[{step}]")], release=lambda _: True
    )
    (finding,) = findings(rows, steps)
    assert finding.evidence["bytes_per_step"] == 8 * KIB


@each_row(("size", "kinds"), [(1023, []), (1024, ["leak"])])
def test_a_number_kept_per_step_is_no_leak(size, kinds):
    rows, steps = training(20, lambda _: [keep(size)])
    assert [finding.kind for finding in findings(rows, steps)] == kinds


def test_a_leak_of_little_beside_the_peak_is_not_told():
    rows, steps = training(20, lambda _: [keep(2 * KIB)], work=400 * KIB * KIB)
    assert findings(rows, steps) == []


def test_new_buffers_for_old_ones_are_no_growth():
    # Variables move, one per step, from buffers from before the profile to new ones.
    size, count = 8 * KIB, 12
    rows, used = [], count * size
    for step in range(count):
        rows.append(
            alloc(100 + step, size, op="assign", shape="[1]", in_use_bytes=used + size)
            | {"time_ps": 100 * step}
        )
        rows.append(free(500 + step, size, in_use_bytes=used) | {"time_ps": 100 * step + 1})
    steps = steps_at(*range(0, 100 * count + 1, 100))
    _, growth = grow(rows, steps)
    assert [group.pattern.kind for group in growth.groups] == ["leak"]
    assert findings(rows, steps) == []


@each_row(("count", "sure"), [(3, "75%"), (4, "88%")])
def test_a_few_marked_steps_tell_a_leak_and_how_sure_it_is(count, sure):
    rows, steps = training(count, lambda _: [keep(8 * KIB)])
    (finding,) = findings(rows, steps)
    assert (finding.kind, finding.severity) == ("leak", "warning")
    assert finding.title == (
        "(unnamed allocator): 8.0 KiB more stay in memory with every step since step 0 (train 0): "
        f"hidden float [4, 4]; in {count} steps, none released (confidence {sure})"
    )


@each_row(
    "kept",
    [
        lambda step: [keep(8 * KIB)] if step else [],  # not by the first
        lambda step: [keep(8 * KIB + 64 * step, shape="")],  # of other sizes
        lambda step: [keep(8 * KIB)] * (step + 1),  # not as many
        lambda step: [keep(8 * KIB)] if step < 2 else [],  # a cache that is full
        lambda _: [keep(512)],  # a number
    ],
)
def test_a_few_marked_steps_that_differ_tell_no_leak(kept):
    for count in (2, 3, 4):
        assert findings(*training(count, kept)) == []


def test_gradients_that_add_up_over_marked_steps_are_no_leak():
    made = [keep(8 * KIB, f"grad{n}", f"[{n}]") for n in range(3)]
    rows, steps = training(4, lambda step: [] if step else made)
    assert findings(rows, steps) == []


def test_growth_that_no_signature_explains_is_unattributed():
    rows, used = [], 0
    for step in range(16):
        used += 8 * KIB
        rows.append(alloc(None, 8 * KIB, op="x", in_use_bytes=used) | {"time_ps": 100 * step})
    (finding,) = findings(rows, steps_at(*range(0, 1601, 100)))
    assert finding.evidence["op"] == "(unattributed)"
    assert finding.evidence["bytes_per_step"] == 8 * KIB


def test_records_whose_deallocations_cannot_be_followed_tell_no_growth():
    rows, steps = training(12, lambda _: [keep(8 * KIB)])
    rows += [free(None) | {"time_ps": 1150} for _ in range(4)]
    assert findings(rows, steps) == []


def test_buffers_of_a_kind_whose_end_is_never_logged_tell_no_growth():
    chosen = keep(8 * KIB) | {"region_type": "output"}
    rows, steps = training(12, lambda _: [chosen])
    assert findings(rows, steps) == []
    rows, steps = training(12, lambda _: [chosen], capacity=10**9)
    assert [finding.kind for finding in findings(rows, steps)] == ["leak"]


def test_a_cache_that_filled():
    filled = {0, 1, 3, 4, 6, 7, 9}
    rows, steps = training(26, lambda step: [keep(8 * KIB)] if step in filled else [])
    (finding,) = findings(rows, steps)
    assert (finding.kind, finding.severity) == ("cache", "info")
    assert (finding.evidence["until_step"], finding.evidence["kept_bytes"]) == (9, 7 * 8 * KIB)
    assert "has stopped" in finding.title


def test_a_small_cache_is_not_told():
    filled = {0, 1, 3, 4, 6, 7, 9}
    rows, steps = training(26, lambda step: [keep(700)] if step in filled else [])
    assert findings(rows, steps) == []


def test_memory_that_rose_once_and_stayed():
    rows, steps = training(
        14, lambda step: [keep(8 * KIB, "slot"), keep(4 * KIB, "v", "[9]")] if step == 6 else []
    )
    (finding,) = findings(rows, steps)
    assert (finding.kind, finding.evidence["since_step"]) == ("step_up", 6)
    assert finding.evidence["kept_bytes"] == 12 * KIB
    assert [row["op"] for row in finding.rows] == ["slot", "v"]


def renewed(rows, step, freed):
    """``rows`` where step ``step`` also frees buffers of the sizes ``freed`` from before."""
    at = 100 * step + 50
    old = [free(900 + n, size, time_ps=at + n) for n, size in enumerate(freed)]
    return sorted(rows + old, key=lambda row: row["time_ps"])


def test_what_takes_the_place_of_memory_from_before_the_profile_is_no_rise():
    made = [keep(30 * KIB, "slot"), keep(12 * KIB, "constant", "[9]")]
    rows, steps = training(14, lambda step: made if step == 6 else [])
    (finding,) = findings(renewed(rows, 6, [12 * KIB]), steps)
    assert finding.evidence["kept_bytes"] == 30 * KIB
    assert [row["op"] for row in finding.rows] == ["slot"]
    assert "30.0 KiB" in finding.title
    # Freed in another step, or of another size, it made no room for this one.
    for at, size in ((9, 12 * KIB), (6, 11 * KIB)):
        (finding,) = findings(renewed(rows, at, [size]), steps)
        assert finding.evidence["kept_bytes"] == 42 * KIB
    assert findings(renewed(rows, 6, [12 * KIB, 30 * KIB]), steps) == []


def test_each_old_buffer_makes_room_for_one_new_one():
    rows, steps = training(14, lambda step: [keep(15 * KIB, "slot")] * 3 if step == 6 else [])
    (finding,) = findings(renewed(rows, 6, [15 * KIB]), steps)
    assert finding.rows[0]["kept_bytes"] == finding.evidence["kept_bytes"] == 30 * KIB


def test_of_several_that_may_have_taken_the_place_it_is_the_smallest_that_did():
    made = [keep(10 * KIB, "slot"), keep(10 * KIB, "slot"), keep(10 * KIB, "weight", "[9]")]
    rows, steps = training(14, lambda step: made if step == 6 else [])
    (finding,) = findings(renewed(rows, 6, [10 * KIB]), steps)
    assert [(row["op"], row["kept_bytes"]) for row in finding.rows] == [("slot", 20 * KIB)]


def test_what_a_source_says_was_there_before_makes_room_as_well():
    made = [keep(30 * KIB, "slot"), keep(12 * KIB, "constant", "[9]")]
    rows, steps = training(14, lambda step: made if step == 6 else [])
    old = alloc(900, 12 * KIB, op="(before profile)", is_before=True, time_ps=0)
    (finding,) = findings([old, *renewed(rows, 6, [12 * KIB])], steps)
    assert finding.evidence["kept_bytes"] == 30 * KIB


def test_a_trifle_beside_the_rise_is_not_told():
    made = [keep(30 * KIB, "slot"), keep(8, "number", "[9]")]
    rows, steps = training(14, lambda step: made if step == 6 else [])
    (finding,) = findings(rows, steps)
    assert finding.evidence["kept_bytes"] == 30 * KIB
    assert len(finding.rows) == 1


@each_row("step", [0, 1, 12, 13])
def test_memory_that_rises_in_warm_up_or_at_the_very_end_is_not_told(step):
    rows, steps = training(14, lambda at: [keep(8 * KIB)] if at == step else [])
    assert findings(rows, steps) == []


def test_what_is_made_before_training_begins_is_no_surprise():
    rows, steps = training(14, lambda step: [keep(30 * KIB)] if step == 6 else [], started=6)
    assert findings(rows, steps) == []


def test_a_sawtooth():
    rows, steps = training(
        23, lambda _: [keep(16 * KIB)], release=lambda step: step % 5 == 0, capacity=10**9
    )
    (finding,) = findings(rows, steps)
    assert finding.kind == "sawtooth"
    assert (finding.evidence["period_steps"], finding.evidence["bytes_per_step"]) == (5, 16 * KIB)
    assert finding.evidence["height_bytes"] == 4 * 16 * KIB


def test_sawteeth_that_are_released_together_are_one_finding_and_no_saving():
    rows, steps = training(
        23,
        lambda _: [keep(32 * KIB, "grad/a"), keep(16 * KIB, "grad/b", "[8]")],
        release=lambda step: step % 5 == 0,
    )
    made, growth = grow(rows, steps)
    (finding,) = growth_findings(made, growth)
    assert [row["op"] for row in finding.rows] == ["grad/a", "grad/b"]
    assert finding.evidence["bytes_per_step"] == 48 * KIB
    assert finding.evidence["height_bytes"] == 4 * 48 * KIB
    assert finding.title.endswith(
        ": grad/a float [4, 4] and 1 more gather 48.0 KiB per step and are released about every "
        "5 steps: that adds up to 192.0 KiB to the peak"
    )
    result = signatures_held(made, 0, find_grown(made, growth))
    ops = [made.signatures[int(code)].op for code in np.flatnonzero(result)]
    assert sorted(ops) == ["grad/a", "grad/b"]


def test_sawteeth_of_other_phases_are_findings_of_their_own():
    rows, address = [], 1000
    held = {"a": [], "b": []}
    for step in range(40):
        here = []
        for op, at in (("a", 0), ("b", 3)):
            if step % 6 == at:
                here += [free(place) for place in held[op]]
                held[op] = []
            address += 1
            held[op].append(address)
            here.append(alloc(address, 16 * KIB, op=op, shape="[4]"))
        rows += [row | {"time_ps": 100 * step + n} for n, row in enumerate(here)]
    result = findings(rows, steps_at(*range(0, 4001, 100)))
    assert sorted((one.kind, one.evidence["op"]) for one in result) == [
        ("sawtooth", "a"),
        ("sawtooth", "b"),
    ]


def test_irregular_teeth_have_no_period():
    cleared = {4, 6, 14, 17, 20, 31, 33, 42}
    rows, steps = training(45, lambda _: [keep(16 * KIB)], release=lambda step: step in cleared)
    (finding,) = findings(rows, steps)
    assert finding.evidence["period_steps"] is None
    assert finding.evidence["bytes_per_step"] == 16 * KIB
    assert "gathers 16.0 KiB per step and is released at irregular intervals" in finding.title


def test_a_steady_run_has_no_findings_with_or_without_figures_and_steps():
    for capacity in (None, 10**9):
        rows, steps = training(
            20, lambda _: [keep(8 * KIB)], release=lambda _: True, capacity=capacity
        )
        assert findings(rows, steps) == []
        assert find_marks(history(rows), 0, empty_columns("steps")) is not None
        assert findings(rows, empty_columns("steps")) == []


def test_more_steps_than_are_kept_are_thinned():
    rows, steps = training(3000, lambda _: [keep(8 * KIB)])
    _, growth = grow(rows, steps)
    assert (growth.stride, len(growth.marks)) == (3, 1000)
    (leak,) = growth.leaks
    assert leak.pattern.bytes_per_step == 8 * KIB
    (finding,) = findings(rows, steps)
    assert finding.evidence["steps"] == 3000


def test_a_repetition_of_a_thinned_period_keeps_its_number():
    rows = []
    for step in range(3000):
        rows += [alloc(1, 100 * KIB, op="a", shape="[1]"), alloc(2, KIB, op="b", shape="[1]")]
        rows += [free(1), free(2)]
        rows += [alloc(10 + step, 8 * KIB, op="hidden", shape="[4]")] if step >= 1500 else []
    (finding,) = findings(rows, empty_columns("steps"))
    evidence = finding.evidence
    assert evidence["steps_found_by"] == "period"
    assert evidence["steps"] == pytest.approx(3000, abs=2)
    assert evidence["since_step"] == pytest.approx(1500, abs=6)
    assert evidence["since_step_name"] == str(evidence["since_step"])
    assert "stay in memory with every repetition since repetition 15" in finding.title
    assert "step" not in finding.title


def test_one_step_tells_nothing():
    made = history([alloc(1, 1), free(1)])
    assert find_growth(made, 0, find_marks(made, 0, steps_at(0, 5))) is None
    assert find_growth(made, 0, None) is None


@settings(max_examples=150)
@given(records, st.lists(st.integers(0, 45), min_size=3, max_size=7, unique=True))
def test_what_steps_leave_equals_the_slow_answer(rows, bounds):
    made = history(rows)
    steps = steps_at(*sorted(bounds))
    for number, allocator in enumerate(made.lifetimes.allocators):
        marks = find_marks(made, number, steps)
        growth = find_growth(made, number, marks)
        if growth is None:
            continue
        slow = live_bytes(buffers(rows), allocator, marks.rows.tolist())
        slow = {key: series for key, series in slow.items() if any(series)}
        whole = [0] * len(marks)
        for group in growth.groups:
            one = group.signature
            key = (allocator, one.op, one.region_type, one.data_type, one.shape, one.bytes)
            if group.forms == 1 and one.op != "(unattributed)":
                assert group.series.tolist() == slow.pop(key)
            else:
                whole = (np.array(whole) + group.series).tolist()
        assert whole == np.sum([*slow.values(), [0] * len(marks)], axis=0).tolist()
        used = in_use(rows, allocator)
        own = [n for n, row in enumerate(rows) if (row.get("allocator") or "") == allocator]
        for place, mark in enumerate(marks.rows.tolist()):
            before = [row for row in own if row < mark] or own[:1]
            assert growth.total[place] == used[before[-1]]


def states(*moments):
    """Profiles that hold so many KiB of each op."""
    return [
        profile_state(
            profile_with(
                [alloc(n, size * KIB, op=op) for n, (op, size) in enumerate(held.items()) if size]
                + [alloc(99, 1), free(99)]
            )
        )
        for held in moments
    ]


def growing(*sizes):
    result = series_of(states(*({"history": size, "weights": 100} for size in sizes)))
    return [(one.kind.op, tuple(size // KIB for size in one.bytes)) for one in result.growing]


def test_what_grows_is_a_leak():
    result = series_of(
        states(*({"history": 10 * n, "other": 5 * n, "w": 100} for n in range(1, 5)))
    )
    assert [one.kind.op for one in result.growing] == ["history", "other"]
    assert result.growing[0].counts == (1, 1, 1, 1)
    assert (result.growing[0].risen, result.growing[0].per_profile) == (30 * KIB, 10 * KIB)
    (finding,) = result.findings
    assert (finding.kind, finding.severity) == ("leak", "warning")
    assert "10.0 KiB more live in each of 4 profiles: history and 1 more" in finding.title
    document = result.as_json()
    assert document["growing"][0]["bytes"] == [10 * KIB, 20 * KIB, 30 * KIB, 40 * KIB]
    assert document["findings"] == [finding.as_json()]
    assert document["paths"] == ["fake.pb"] * 4


@each_row(
    ("sizes", "grows"),
    [
        ((1, 5, 9), True),
        ((0, 5, 9), True),
        ((1, 5, 5, 9, 13), True),
        ((9, 9, 9), False),
        ((9, 5, 1), False),
        ((5, 9, 13, 9, 5), False),
        ((5, 1, 9, 13, 17), False),
        ((1, 1, 1, 1, 9), False),
        # A trifle of what is in use.
        ((1, 1.5, 2), False),
    ],
)
def test_what_rises_in_most_profiles_grows(sizes, grows):
    whole = tuple(int(size) for size in sizes)
    assert growing(*sizes) == ([("history", whole)] if grows else [])


def test_two_profiles_show_no_direction():
    assert growing(1, 9) == []


def test_allocators_are_those_that_all_have():
    rows = [alloc(1, 8, allocator="a"), alloc(2, 8, allocator="b")]
    first, second = (profile_state(profile_with(some)) for some in (rows, rows[:1]))
    assert list(series_of([first, second, second]).peaks) == ["a"]
