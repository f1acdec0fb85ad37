"""Cycles, against a slow and plain reference."""

import re
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.fake import columns_of

from peakline.graph.index import GraphIndex
from peakline.graph.rules_cycles import check_cycles

OPS = ("Op", "Op", "Op", "Merge", "NextIteration")
GRAPHS = st.integers(1, 7).flatmap(
    lambda count: st.tuples(
        st.lists(st.sampled_from(OPS), min_size=count, max_size=count),
        st.lists(
            st.tuples(st.integers(0, count - 1), st.integers(0, count - 1), st.booleans()),
            max_size=12,
        ),
    )
)


def index_of(ops, edges):
    nodes = [{"name": f"n{at}", "op": op} for at, op in enumerate(ops)]
    inputs = [
        {"source": f"n{source}", "target": f"n{target}", "is_control": control}
        for source, target, control in edges
    ]
    return GraphIndex(
        columns_of("nodes", nodes),
        columns_of("edges", inputs),
        columns_of("function_arguments", []),
    )


def runs(ops, edges):
    """Which nodes can run: over and over, take every node that nothing keeps waiting."""
    back = [
        not control and ops[source] == "NextIteration" and ops[target] == "Merge"
        for source, target, control in edges
    ]
    loops = {edge[1] for edge, is_back in zip(edges, back, strict=True) if is_back}
    done = set()
    while True:
        ready = set()
        for node in set(range(len(ops))) - done:
            mine = [edge for edge, is_back in zip(edges, back, strict=True)
                    if edge[1] == node and not is_back]  # fmt: skip
            if node in loops:
                controls = [source in done for source, _, control in mine if control]
                if all(controls) and any(s in done for s, _, control in mine if not control):
                    ready.add(node)
            elif all(source in done for source, _, _ in mine):
                ready.add(node)
        if not ready:
            return done
        done |= ready


@settings(max_examples=300)
@given(GRAPHS)
def test_a_cycle_is_found_where_nodes_cannot_run(graph):
    ops, edges = graph
    result = list(check_cycles(index_of(ops, edges)))
    stuck = set(range(len(ops))) - runs(ops, edges)
    assert bool(result) == bool(stuck)
    assert {int(one.node[1:]) for one in result} <= stuck


def named(message):
    """The nodes of a message in order."""
    path = re.split("[;,]", message.split(": ")[1])[0]
    return [int(word.strip("'")[1:]) for word in path.split(" -> ")]


@settings(max_examples=300)
@given(GRAPHS)
def test_what_is_named_is_a_cycle(graph):
    ops, edges = graph
    there = {(source, target) for source, target, _ in edges}
    for one in check_cycles(index_of(ops, edges)):
        if "no way in" in one.message:
            assert ops[int(one.node[1:])] == "Merge"
            continue
        path = named(one.message)
        assert path[0] == path[-1] == int(one.node[1:])
        assert set(pairwise(path)) <= there


def test_a_long_cycle_names_its_ends():
    count = 40
    edges = [(at, (at + 1) % count, False) for at in range(count)]
    (one,) = check_cycles(index_of(["Op"] * count, edges))
    assert one.node == "n0"
    assert one.message.startswith("40 nodes in a cycle: 'n0' -> 'n1' -> 'n2' -> 'n3' -> 'n4' -> ")
    assert one.message.endswith(
        " -> (30 more) -> 'n35' -> 'n36' -> 'n37' -> 'n38' -> 'n39' -> 'n0'"
    )


def test_every_cycle_is_found_once():
    edges = [(0, 1, False), (1, 0, False), (1, 2, False), (3, 3, True), (2, 4, False)]
    assert [one.node for one in check_cycles(index_of(["Op"] * 5, edges))] == ["n0", "n3"]
