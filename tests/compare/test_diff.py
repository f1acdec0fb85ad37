"""Differences against plain dictionaries, and on the recorded programs with known faults; which
allocators and kinds are taken as the same.
"""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.memory.records import alloc, events, free, records, reference, steps_at

import peakline
from peakline.compare.matching import match_allocators, match_kinds, stem_of
from peakline.compare.memory import compare
from peakline.compare.state import SPECIAL, Kind, state_of
from peakline.errors import NotFoundError
from peakline.findings.finding import Finding
from peakline.findings.memory_answer import explain_memory
from peakline.findings.ranking import is_worse
from peakline.memory.signatures import normal_shape
from peakline.tables.tables import empty_columns

DATA = Path(__file__).resolve().parents[1] / "data"


def answer(rows, steps=None):
    return explain_memory(events(rows), empty_columns("steps") if steps is None else steps)


@cache
def program(name):
    (path,) = DATA.glob(f"*/{name}.*pb.gz")
    with peakline.open(str(path)) as profile:
        return profile.memory()


def peak_groups(rows):
    """Per allocator, the peak and the bytes of every kind at it, in dictionaries."""
    result = {}
    for name, answer in reference(rows).items():
        kinds = {}
        if answer["peak"] is None:
            continue
        for (op, region, data_type, shape, _), (size, _) in answer["peak"]["groups"].items():
            kind = (op, region, data_type, normal_shape(shape))
            kinds[kind] = kinds.get(kind, 0) + size
        result[name] = answer["peak"]["bytes"], kinds
    return result


def columns(kind):
    return (kind.op, kind.region_type, kind.data_type, kind.shape)


def named(one):
    """Its names before and after, None where it is not there."""
    return tuple(state and state.allocator for state in (one.before, one.after))


def mirrored(row):
    kind, was = (row.kind, None) if row.was is None else (row.was, row.kind)
    return (kind, was, row.after_bytes, row.before_bytes, row.after_count, row.before_count)


def plain(row):
    return (
        row.kind, row.was, row.before_bytes, row.after_bytes, row.before_count, row.after_count,
    )  # fmt: skip


@settings(max_examples=60)
@given(records, records)
def test_every_byte_of_both_peaks_is_in_one_row(before, after):
    result = compare(answer(before), answer(after))
    old, new = peak_groups(before), peak_groups(after)
    names = [named(one) for one in result.allocators]
    assert {name for name, _ in names} - {None} == old.keys()
    assert {name for _, name in names} - {None} == new.keys()
    for one in result.allocators:
        was, old_kinds = old.get(named(one)[0], (0, {}))
        now, new_kinds = new.get(named(one)[1], (0, {}))
        assert one.peak_delta_bytes == now - was
        assert sum(row.delta_bytes for row in one.groups) == now - was
        sides = ((one.before, old_kinds), (one.after, new_kinds))
        for state, kinds in sides:
            if state is not None and not any("has no" in note for note in one.notes):
                assert {columns(group.kind): group.bytes for group in state.groups} == kinds
        # A kind that is in no row has the same bytes at both peaks.
        if not any("has no" in note for note in one.notes):
            for kinds, side in ((old_kinds, 0), (new_kinds, 1)):
                in_rows = {}
                for row in one.groups:
                    kind = (row.was or row.kind, row.kind)[side]
                    size = (row.before_bytes, row.after_bytes)[side]
                    if size:
                        assert columns(kind) not in in_rows
                        in_rows[columns(kind)] = size
                for kind, size in kinds.items():
                    assert in_rows.get(kind, (new_kinds, old_kinds)[side].get(kind)) == size


@settings(max_examples=60)
@given(records, records)
def test_the_other_way_round_is_the_mirror_image(before, after):
    there = compare(answer(before), answer(after))
    ways = {named(one)[::-1]: one for one in compare(answer(after), answer(before)).allocators}
    assert len(ways) == len(there.allocators)
    for one in there.allocators:
        other = ways[named(one)]
        assert other.peak_delta_bytes == -one.peak_delta_bytes
        assert {mirrored(row) for row in other.groups} == {plain(row) for row in one.groups}
        assert {(row.kind, row.delta_bytes) for row in other.churn if row.was is None} == {
            (row.kind, -row.delta_bytes) for row in one.churn if row.was is None
        }


@settings(max_examples=30)
@given(records)
def test_a_profile_does_not_differ_from_itself(rows):
    result = compare(answer(rows), answer(rows))
    assert result.is_empty
    assert all(not (one.groups or one.growth or one.churn) for one in result.allocators)


@each_row("name", ["leak_list", "doubled_batch", "fragmentation", "tf1_cnn_2"])
def test_a_recording_does_not_differ_from_itself(name):
    assert compare(program(name), program(name)).is_empty


def test_a_doubled_batch_is_told_as_such():
    result = compare(program("doubled_batch_healthy"), program("doubled_batch"))
    (one,) = result.allocators
    assert one.peak_delta_bytes == 5568256 == sum(row.delta_bytes for row in one.groups)
    first = one.groups[0]
    assert (first.kind.op, first.change) == ("model/hidden/MatMul", "shape")
    assert first.text == "same op, [192, 1024] -> [384, 1024]"
    assert first.after_bytes > 2 * first.before_bytes
    assert one.notes[0] == "a dimension of 192 became 384 in 6 groups of buffers: +5.4 MiB"
    assert (result.new_findings, result.gone_findings) == ((), ())
    assert not one.growth


def test_a_leak_is_what_grew_and_a_new_finding():
    result = compare(program("leak_list_healthy"), program("leak_list"))
    (one,) = result.allocators
    first = one.groups[0]
    assert (first.kind.op, first.change) == ("model/hidden/MatMul", "count")
    assert first.text == "2 -> 18 buffers"
    (leak,) = one.growth
    assert (leak.kind, leak.before_bytes, leak.after_bytes) == (first.kind, 0, 786432)
    assert [finding.kind for finding in result.new_findings] == ["leak"]
    assert result.gone_findings == ()
    back = compare(program("leak_list"), program("leak_list_healthy"))
    assert [finding.kind for finding in back.gone_findings] == ["leak"]
    assert back.new_findings == ()


def test_late_slots_are_new():
    (one,) = compare(program("late_slot_healthy"), program("late_slot")).allocators
    first = one.groups[0]
    assert (first.kind.op, first.change, first.before_bytes) == ("ZerosLike", "new", 0)
    assert first.after_bytes == 6291200


def test_two_formats_with_two_names_of_one_allocator(sessions):
    with (
        peakline.open(sessions / "tf2_cnn") as xplane,
        peakline.open(DATA / "run_metadata" / "tf1_cnn_2.pb.gz") as other,
    ):
        result = compare(xplane.memory(), other.memory())
    assert [one.allocator for one in result.allocators] == ["mklcpu"]
    assert result.allocators[0].notes[0] == (
        "'bfc_cpu_allocator_for_gpu' before and 'mklcpu' after are taken as one: both are CPU 0"
    )


def test_a_column_that_one_side_lacks_is_not_compared():
    before = [alloc(1, 64, op="dense/MatMul", region_type="output", data_type="float", shape="[4]")]
    after = [alloc(1, 64, op="dense/MatMul")]
    (one,) = compare(answer(before), answer(after)).allocators
    assert one.groups == ()
    assert one.notes == (
        "the later profile has no regions and no types and no shapes, so they are not compared",
    )


def test_shapes_are_compared_however_they_are_spelled():
    before, after = ([alloc(1, 64, op="a", shape=shape)] for shape in ("[2,3]", "(2, 3,)"))
    assert compare(answer(before), answer(after)).is_empty


CHANGES = [
    ({"shape": "[8, 2]"}, {"shape": "[16, 2]"}, "shape", "same op, [8, 2] -> [16, 2]"),
    ({"data_type": "float"}, {"data_type": "half"}, "data type", "same op, float -> half"),
    ({"region_type": "temp"}, {"region_type": "output"}, "region", "same op, temp -> output"),
    ({"op": "net_1/MatMul"}, {"op": "net_2/MatMul"}, "renamed", "renamed from net_1/MatMul"),
    ({"op": "f m.py:3"}, {"op": "f m.py:5"}, "renamed", "renamed from f m.py:3"),
    ({"op": "net/MatMul"}, {"op": "net/Einsum"}, "renamed", "renamed from net/MatMul"),
    ({"op": "net/MatMul"}, {"op": "model/MatMul"}, "renamed", "renamed from net/MatMul"),
    ({"shape": "[8, 2]"}, {"shape": "[8, 2, 1]"}, "new", "new"),
    ({"op": "MatMul"}, {"op": "Einsum"}, "new", "new"),
]


@each_row(("old", "new", "change", "text"), CHANGES)
def test_what_happened_to_a_kind(old, new, change, text):
    base = {"op": "net/MatMul", "region_type": "output", "data_type": "float", "shape": "[8, 2]"}
    same = alloc(9, 10, op="other/op", **{n: v for n, v in base.items() if n != "op"})
    before = [alloc(1, 64, **(base | old)), same]
    after = [alloc(1, 128, **(base | new)), same]
    (one,) = compare(answer(before), answer(after)).allocators
    first = one.groups[0]
    assert (first.change, first.text) == (change, text)
    assert (first.before_bytes, first.after_bytes) == ((0, 128) if change == "new" else (64, 128))


def test_what_was_there_before_but_not_at_the_peak_is_not_new():
    small, large = {"op": "p", "shape": "[1]"}, {"op": "q", "shape": "[9]"}
    before = [alloc(1, 4, **small), free(1), alloc(2, 9, **large)]
    after = [alloc(2, 9, **large), alloc(1, 4, **small)]
    (one,) = compare(answer(before), answer(after)).allocators
    assert [(row.kind.op, row.change) for row in one.groups] == [("p", "now at the peak")]
    (one,) = compare(answer(after), answer(before)).allocators
    assert [(row.kind.op, row.change) for row in one.groups] == [("p", "no longer at the peak")]


def test_larger_pieces_of_the_same_are_told_apart():
    before = [alloc(n, 512, op="p", shape="[100]", requested_bytes=400) for n in range(3)]
    after = [alloc(n, 768, op="p", shape="[100]", requested_bytes=400) for n in range(3)]
    (one,) = compare(answer(before), answer(after)).allocators
    assert [(row.change, row.delta_bytes) for row in one.groups] == [("pieces", 768)]
    assert one.groups[0].text == "the same buffers in larger pieces"
    assert one.notes[0].startswith("+768 B is the same buffers in pieces of another size")


def test_churn_is_told_by_kind_and_step():
    def run(size):
        rows = []
        for step in range(4):
            rows += [alloc(step, size, op="p", shape="[3]", step_id=step), free(step, size)]
        return answer(rows, steps_at(0, 2, 4, 6, 8))

    (one,) = compare(run(100), run(300)).allocators
    assert (one.before.allocated_per_step, one.after.allocated_per_step) == (100, 300)
    (row,) = one.churn
    assert (row.kind.op, row.before_bytes, row.after_bytes, row.is_pieces) == ("p", 100, 300, True)


def test_one_allocator_of_several():
    before = [alloc(1, 5, allocator="GPU_0_bfc"), alloc(1, 7, allocator="cpu")]
    after = [alloc(1, 6, allocator="cuda:0"), alloc(1, 7, allocator="cpu")]
    result = compare(answer(before), answer(after))
    for name in ("GPU_0_bfc", "cuda:0"):
        (one,) = result.only(name).allocators
        assert (one.allocator, one.peak_delta_bytes) == ("cuda:0", 1)
    with pytest.raises(NotFoundError, match="there is: GPU_0_bfc, cpu, cuda:0"):
        result.only("TPU_0")


def test_an_allocator_on_one_side_only():
    before = [alloc(1, 5, op="p", allocator="GPU_0_bfc")]
    after = [alloc(1, 6, op="p", allocator="xla_gpu_host_bfc")]
    new, gone = compare(answer(before), answer(after)).allocators
    assert (new.allocator, new.before, new.peak_delta_bytes) == ("xla_gpu_host_bfc", None, 6)
    assert (gone.allocator, gone.after, gone.peak_delta_bytes) == ("GPU_0_bfc", None, -5)
    assert [row.change for one in (new, gone) for row in one.groups] == ["new", "gone"]


def test_memory_from_before_the_profile_is_neither_new_nor_gone():
    before = [alloc(1, 5, op="p", in_use_bytes=5)]
    after = [alloc(1, 5, op="p", in_use_bytes=9)]
    (one,) = compare(answer(before), answer(after)).allocators
    (row,) = one.groups
    assert row.kind.op in SPECIAL
    assert (row.change, row.text, row.delta_bytes) == ("bytes", "", 4)


def test_an_empty_answer_against_another():
    nothing, some = answer([]), answer([alloc(1, 5)])
    assert compare(nothing, nothing).allocators == ()
    (one,) = compare(nothing, some).allocators
    assert (one.before, one.peak_delta_bytes) == (None, 5)
    assert state_of(nothing).nothing == "no memory events in this profile"


BOTH = [
    ("GPU_0_bfc", "cuda:0", "both are GPU 0"),
    ("bfc_cpu_allocator_for_gpu", "cpu:0", "both are CPU 0"),
    ("mklcpu", "cpu", "both are CPU 0"),
    ("xla_gpu_host_bfc", "cuda_host_bfc", "both are host 0"),
    ("GPU_1_bfc", "cuda:3", "both are the only GPU memory that has no namesake"),
    ("/job:ps/replica:0/task:0/mklcpu", "cpu", "both are CPU 0"),
    ("", "heap", "it is the only one in either profile"),
]


@each_row(("before", "after", "why"), BOTH)
def test_two_names_of_one_allocator(before, after, why):
    (pair,) = match_allocators([before], [after])
    assert (pair.before, pair.after) == (0, 0)
    assert pair.note == f"{before!r} before and {after!r} after are taken as one: {why}"


APART = [
    (["GPU_0_bfc"], ["xla_gpu_host_bfc"]),
    (["GPU_0_bfc"], ["cpu"]),
    (["GPU_0_bfc"], ["cuda:2", "cuda:3"]),
    (["TPU_0", "TPU_1"], ["GPU_0_bfc", "GPU_1_bfc"]),
    (["/job:a/replica:0/task:0/cpu", "/job:a/replica:0/task:1/cpu"], ["cpu"]),
    (["0", "1"], ["2", "3"]),
]


@each_row(("before", "after"), APART)
def test_nothing_ambiguous_is_taken_as_one(before, after):
    pairs = match_allocators(before, after)
    assert all(None in pair[:2] for pair in pairs)
    assert len(pairs) == len(before) + len(after)


def test_a_namesake_goes_first():
    pairs = match_allocators(["cuda:0", "GPU_0_bfc"], ["GPU_0_bfc"])
    assert [pair[:2] for pair in pairs] == [(1, 0), (0, None)]
    pairs = match_allocators(["GPU_0_bfc", "GPU_1_bfc"], ["cuda:1", "cuda:0"])
    assert [pair[:2] for pair in pairs] == [(1, 0), (0, 1)]


names = st.lists(
    st.sampled_from(["GPU_0_bfc", "GPU_1_bfc", "cuda:0", "cuda:1", "cpu", "mklcpu", "", "0"]),
    unique=True,
    max_size=6,
)


@given(names, names)
def test_every_allocator_is_in_one_pair_and_the_way_round_changes_nothing(before, after):
    pairs = match_allocators(before, after)
    assert sorted(p.before for p in pairs if p.before is not None) == list(range(len(before)))
    assert sorted(p.after for p in pairs if p.after is not None) == list(range(len(after)))
    assert [p.after for p in pairs if p.after is not None] == list(range(len(after)))
    back = match_allocators(after, before)
    assert {(p.before, p.after) for p in pairs} == {(p.after, p.before) for p in back}
    assert all(bool(p.note) == (None not in p[:2] and before[p.before] != after[p.after])
               for p in pairs)  # fmt: skip


def test_stems():
    assert stem_of("model_1/dense_12/MatMul_3") == "model/dense/MatMul"
    assert stem_of("conv2d/BiasAdd") == "conv2d/BiasAdd"
    assert stem_of("forward model.py:39") == "forward model.py"


kinds = st.sets(
    st.builds(
        Kind,
        st.sampled_from(["", "p", "s/p", "s/p_1", "s/q", "t/p", "(before profile)"]),
        st.sampled_from(["", "temp"]),
        st.sampled_from(["", "float"]),
        st.sampled_from(["", "[1, 2]", "[2, 2]", "[4, 4]", "[3]"]),
    ),
    max_size=12,
)


@given(kinds, kinds)
def test_every_kind_is_in_one_pair_and_the_way_round_changes_nothing_either(before, after):
    pairs = match_kinds(before, after)
    assert Counter(p.before for p in pairs if p.before is not None) == Counter(before)
    assert Counter(p.after for p in pairs if p.after is not None) == Counter(after)
    assert {p for p in pairs if p.before == p.after} == {(k, k) for k in before & after}
    back = {(p.after, p.before) for p in match_kinds(after, before)}
    assert set(pairs) == back
    for one, other in pairs:
        if one != other and None not in (one, other):
            assert "(before profile)" not in (one.op, other.op)
            assert one.op
            assert other.op


def test_the_nearest_shape_of_an_op_is_its_partner():
    def kind(shape):
        return Kind("p", "output", "float", shape)

    before = [kind("[32, 128]"), kind("[32, 10]"), kind("[128]")]
    after = [kind("[64, 128]"), kind("[64, 10]"), kind("[128]")]
    assert set(match_kinds(before, after)) == set(zip(before, after, strict=True))


def finding(kind, severity="warning", **evidence):
    return Finding(kind, severity, "it is so", evidence, "do it")


@each_row(
    ("kind", "name", "before", "after", "worse"),
    [
        ("leak", "bytes_per_step", 100, 126, False),
        ("huge_temporary", "saved_bytes", 100, 126, True),
        ("huge_temporary", "saved_bytes", 100, 125, False),
        ("huge_temporary", "saved_bytes", 126, 100, False),
        ("huge_temporary", "saved_bytes", None, 100, False),
        ("python_work", "gain_share", 0.20, 0.30, True),
        # Half as much again, and little of the time.
        ("python_work", "gain_share", 0.02, 0.06, False),
        ("python_work", "gain_share", 0.30, 0.36, False),
        ("no_such_kind", "saved_bytes", 1, 100, False),
    ],
)
def test_it_says_that_more_would_go(kind, name, before, after, worse):
    assert is_worse(finding(kind, **{name: before}), finding(kind, **{name: after})) == worse


def test_a_graver_one_is_worse_and_a_lighter_one_is_not():
    info, warning = finding("python_work", "info"), finding("python_work")
    assert is_worse(info, warning)
    assert not is_worse(warning, info)
    assert not is_worse(warning, warning)
