"""roofline_model against XProf's: every row with and without transfers, the peaks, each step."""

import json

import pytest

import peakline
from peakline.tools import find_tool
from reference.hlo_spaces import hlo_space
from reference.op_spaces import random_op_space
from tests.conformance.oracle import SEEDS
from tests.conformance.stats_tables import difference, different, theirs, written

TOOL = "roofline_model"


def test_every_sample(xprof):
    assert different(xprof, TOOL, xprof.spaces) == {}


@pytest.mark.conformance
def test_spaces_full_of_ops(live_xprof, tmp_path):
    spaces = {f"ops{seed}": random_op_space(seed) for seed in range(SEEDS)}
    assert different(live_xprof, TOOL, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
@pytest.mark.parametrize("kind", ["gpu", "tpu"])
def test_spaces_full_of_instructions(live_xprof, tmp_path, kind):
    spaces = {f"hlo{seed}": hlo_space(seed, kind=kind) for seed in range(SEEDS)}
    assert different(live_xprof, TOOL, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
@pytest.mark.parametrize("kind", ["gpu", "tpu"])
def test_several_hosts(live_xprof, tmp_path, kind):
    seeds = (4, 5, 6)
    paths = written(tmp_path, {f"host{seed}": hlo_space(seed, kind=kind) for seed in seeds})
    found = find_tool(TOOL)
    parameters = found.validated({"compatible": "xprof"})
    found = found.answering(parameters)
    parts = []
    for path in paths:
        with peakline.open(str(path)) as profile:
            parts.append((path.name, found.partial(profile.with_runtime_steps(), parameters)))
    own = json.loads(found.combine(parts, parameters, "json"))
    assert difference(own, theirs(live_xprof, TOOL, *paths)) is None
