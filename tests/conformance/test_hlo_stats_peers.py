"""hlo_stats against XProf's: every column and row, and the text of every kind of instruction."""

import json

import pytest

import peakline
from peakline.tools import find_tool
from reference.hlo_spaces import every_instruction, hlo_space
from reference.op_spaces import random_op_space
from reference.random_xspace import random_xspace
from tests.conformance.oracle import SEEDS, space_of
from tests.conformance.stats_tables import difference, different, theirs, written
from tests.conformance.test_framework_op_stats_peers import is_ordinary

TOOL = "hlo_stats"


def test_every_sample(xprof):
    assert different(xprof, TOOL, xprof.spaces) == {}


@pytest.mark.conformance
def test_spaces_full_of_ops(live_xprof, tmp_path):
    spaces = {f"ops{seed}": random_op_space(seed) for seed in range(SEEDS)}
    assert different(live_xprof, TOOL, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
def test_spaces_full_of_instructions(live_xprof, tmp_path):
    spaces = {f"hlo{seed}": hlo_space(seed) for seed in range(SEEDS)}
    assert different(live_xprof, TOOL, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
def test_random_spaces(live_xprof, tmp_path):
    spaces = {f"random{seed}": random_xspace(seed) for seed in range(SEEDS)}
    ordinary = {name: space for name, space in spaces.items() if is_ordinary(space)}
    assert different(live_xprof, TOOL, written(tmp_path, ordinary)) == {}


@pytest.mark.conformance
def test_several_hosts(live_xprof, tmp_path):
    paths = written(tmp_path, {f"host{seed}": hlo_space(seed, kind="tpu") for seed in (1, 2, 3)})
    found = find_tool(TOOL)
    parameters = found.validated({"compatible": "xprof"})
    found = found.answering(parameters)
    parts = []
    for path in paths:
        with peakline.open(str(path)) as profile:
            parts.append((path.name, found.partial(profile, parameters)))
    own = json.loads(found.combine(parts, parameters, "json"))
    assert difference(own, theirs(live_xprof, TOOL, *paths)) is None


@pytest.mark.conformance
def test_the_text_of_every_instruction(live_xprof, tmp_path):
    """A GPU that runs each instruction of each program of the samples once."""
    count = 0
    for number, path in enumerate(live_xprof.spaces):
        programs = programs_of(path)
        count += len(programs)
        if programs:
            space = every_instruction(programs)
            paths = written(tmp_path, {f"programs{number}": space})
            assert different(live_xprof, TOOL, paths) == {}
    assert count


def programs_of(path):
    """The compiled programs of a file by id."""
    found = {}
    for plane in space_of(path).planes:
        if plane.name == "/host:metadata":
            for number, metadata in plane.event_metadata.items():
                data = [stat.bytes_value for stat in metadata.stats if stat.bytes_value]
                if data:
                    found[number] = data[0]
    return found
