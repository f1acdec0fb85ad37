from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row

from peakline.memory.over_time.trees import SPECIAL, scopes_of, without_small
from peakline.memory.peak.explained import PeakBuffer

parts = st.lists(st.sampled_from(["a", "b", "cc", "", "d"]), min_size=1, max_size=5)
ops = st.one_of(parts.map("/".join), st.sampled_from(SPECIAL))
buffers = st.lists(
    st.builds(
        PeakBuffer,
        ops,
        st.sampled_from(["", "temp"]),
        st.sampled_from(["", "float"]),
        st.sampled_from(["[1]", "[2]"]),
        st.integers(-2, 50),
        st.integers(0, 3),
        st.none() | st.integers(0, 2),
    ),
    max_size=30,
)


def every(scope):
    yield scope
    for part in scope.parts:
        yield from every(part)


def by_hand(found):
    """Bytes of every op, and of every scope that is a beginning of its name."""
    ops_of, scopes = Counter(), Counter()
    for buffer in found:
        if buffer.bytes <= 0:
            continue
        op = buffer.op or "(no op)"
        ops_of[op] += buffer.bytes
        names = [] if op in SPECIAL else op.split("/")[:-1]
        for depth in range(1, len(names) + 1):
            scopes["/".join(names[:depth])] += buffer.bytes
    return ops_of, scopes


@given(buffers)
def test_the_tree_has_every_op_and_adds_up(found):
    root = scopes_of(found, "gpu")
    assert (root.bytes, root.count) == (
        sum(b.bytes for b in found if b.bytes > 0),
        sum(b.count for b in found if b.bytes > 0),
    )
    ops_of, scopes = by_hand(found)
    leaves = [scope for scope in every(root) if not scope.parts and scope is not root]
    assert {leaf.path: leaf.bytes for leaf in leaves} == ops_of
    assert len(leaves) == len(ops_of)
    for scope in every(root):
        if scope.parts:
            assert scope.bytes == sum(part.bytes for part in scope.parts)
            assert scope.count == sum(part.count for part in scope.parts)
            sizes = [part.bytes for part in scope.parts]
            assert sizes == sorted(sizes, reverse=True)
        else:
            assert sum(b.bytes for b in scope.buffers) == scope.bytes
        if scope is not root and scope.parts:
            assert len(scope.parts) > 1
            assert scope.bytes == scopes[scope.path] + ops_of[scope.path]


@given(buffers, st.integers(1, 20))
def test_small_scopes_are_put_together_without_losing_a_byte(found, most):
    whole = scopes_of(found, "gpu")
    few = without_small(whole, most)
    drawn = list(every(few))
    assert (few.bytes, few.count) == (whole.bytes, whole.count)
    assert len(drawn) <= 2 * most + 1
    for scope in drawn:
        if scope.parts:
            assert scope.bytes == sum(part.bytes for part in scope.parts)
            assert scope.count == sum(part.count for part in scope.parts)
    sizes = sorted((scope.bytes for scope in every(whole)), reverse=True)
    assert sorted((s.bytes for s in drawn if not s.merged), reverse=True)[:most] == sizes[:most]
    if len(sizes) <= most:
        assert [(s.path, s.bytes) for s in drawn] == [(s.path, s.bytes) for s in every(whole)]


def buffer(op, size):
    return PeakBuffer(op, "", "", "", size, 1, None)


def test_a_scope_with_one_part_is_one_with_it():
    root = scopes_of([buffer("net/block/conv/Relu", 3), buffer("net/block/conv/Add", 4)], "gpu")
    (conv,) = root.parts
    assert (conv.label, conv.path) == ("net/block/conv", "net/block/conv")
    assert [(part.label, part.bytes) for part in conv.parts] == [("Add", 4), ("Relu", 3)]


def test_an_op_that_is_a_scope_too_is_a_part_of_it():
    (scope,) = scopes_of([buffer("a", 5), buffer("a/b", 2)], "gpu").parts
    assert (scope.label, scope.bytes) == ("a", 7)
    assert [(part.path, part.bytes) for part in scope.parts] == [("a", 5), ("a/b", 2)]


@each_row("op", ["/", "//", "a/" * 5000 + "b", "/job:ps/replica:0"])
def test_odd_names(op):
    root = scopes_of([buffer(op, 5)], "gpu")
    assert root.bytes == 5
    assert [s.path for s in every(root) if not s.parts] == [op]


def test_what_is_merged_is_counted():
    root = without_small(scopes_of([buffer(f"op{n}", 10 - n) for n in range(8)], "gpu"), 4)
    assert [(p.label, p.bytes, p.merged) for p in root.parts] == [
        ("op0", 10, 0),
        ("op1", 9, 0),
        ("op2", 8, 0),
        ("(5 smaller)", 25, 5),
    ]
