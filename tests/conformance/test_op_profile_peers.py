"""op_profile against XProf's: every node of every tree, with and without idle time."""

import json
import math

import pytest

from reference.hlo_spaces import hlo_space
from reference.op_spaces import random_op_space
from reference.xspace_builder import SpaceBuilder
from tests.conformance.oracle import SEEDS
from tests.conformance.stats_tables import ours, ours_together, written

TOOL = "op_profile"
GROUPINGS = ("program", "category", "provenance")


def different(xprof, paths, *, in_order):
    """Where our compatible answer is not XProf's: what differs, by file and grouping.

    Without ``in_order`` what takes equally long may stand in any order: XProf's maps of a TPU's
    ops have none.
    """
    assert paths
    result = {}
    for path in paths:
        for group_by in GROUPINGS:
            other = json.loads(xprof.ask(TOOL, path, options={"group_by": group_by}))
            own = ours(path, TOOL, compatible="xprof", group_by=group_by)
            if not in_order:
                for tree in (tree for one in (own, other) for tree in one.values()):
                    sort(tree)
            text = difference(own, other)
            if text:
                result[path.name, group_by] = text
    return result


def sort(node):
    """Put the children of every node in an order that does not depend on how they came."""
    if isinstance(node, dict):
        for child in node["children"]:
            sort(child)
        node["children"].sort(key=lambda child: json.dumps(child, sort_keys=True)[:60])
        node["children"].sort(key=lambda child: (child["metrics"]["rawTime"], child["name"]))


def difference(own, other, path="$"):
    """The first thing in which two values differ; numbers within 1e-9."""
    if isinstance(own, dict) and isinstance(other, dict):
        if own.keys() != other.keys():
            return f"{path}: {own.keys() ^ other.keys()}"
        pairs = [(own[name], other[name], f"{path}.{name}") for name in own]
    elif isinstance(own, list) and isinstance(other, list):
        if len(own) != len(other):
            return f"{path}: {len(own)}, not {len(other)}"
        pairs = [(a, b, f"{path}[{n}]") for n, (a, b) in enumerate(zip(own, other, strict=True))]
    elif isinstance(own, str) or isinstance(other, str):
        return None if own == other else f"{path}: {own!r}, not {other!r}"
    else:
        is_same = math.isclose(own, other, rel_tol=1e-9, abs_tol=1e-15)
        return None if is_same else f"{path}: {own}, not {other}"
    return next(filter(None, (difference(*pair) for pair in pairs)), None)


def test_every_sample(xprof):
    assert different(xprof, xprof.spaces, in_order=True) == {}


@pytest.mark.conformance
def test_spaces_full_of_ops(live_xprof, tmp_path):
    spaces = {f"ops{seed}": random_op_space(seed) for seed in range(SEEDS)}
    assert different(live_xprof, written(tmp_path, spaces), in_order=False) == {}


@pytest.mark.conformance
@pytest.mark.parametrize("kind", ["gpu", "tpu"])
def test_spaces_full_of_instructions(live_xprof, tmp_path, kind):
    spaces = {f"hlo{seed}": hlo_space(seed, kind=kind) for seed in range(SEEDS)}
    in_order = kind == "gpu"
    assert different(live_xprof, written(tmp_path, spaces), in_order=in_order) == {}


@pytest.mark.conformance
def test_the_order_of_equals_and_what_is_left_out(live_xprof, tmp_path):
    spaces = {}
    for count in (2, 4, 5, 12, 99, 150):
        builder = SpaceBuilder()
        line = builder.plane("/device:GPU:0").line("Stream")
        for number in range(count):
            length = 100 + 100 * (number % 7 == 3)
            line.event("k", number * 1000, length, {"tf_op": f"op{number}:X"})
        spaces[f"equal{count}"] = builder.space
    assert different(live_xprof, written(tmp_path, spaces), in_order=True) == {}


@pytest.mark.conformance
@pytest.mark.parametrize("kind", ["gpu", "tpu"])
def test_several_hosts(live_xprof, tmp_path, kind):
    seeds = (7, 8, 9)
    paths = written(tmp_path, {f"host{seed}": hlo_space(seed, kind=kind) for seed in seeds})
    own = ours_together(paths, TOOL, compatible="xprof")
    other = json.loads(live_xprof.ask(TOOL, *paths))
    for tree in (tree for one in (own, other) for tree in one.values()):
        sort(tree)
    assert difference(own, other) is None
