"""Which allocators and kinds are taken as the same."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row

from peakline.compare.matching import match_allocators, match_kinds, stem_of
from peakline.compare.state import Kind

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
