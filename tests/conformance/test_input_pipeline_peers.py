"""input_pipeline_analyzer against the real XProf: every table, column, row and property.

Inputs: the sample sessions, more folders of them named in PEAKLINE_SAMPLES (separated by colons),
two hosts in one session, PEAKLINE_CONFORMANCE_SEEDS (200) random XSpaces of other tests, and as
many with typed spans, with GPUs, and with TPUs.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import peakline
from peakline.tools.registry import find_tool
from reference.random_xspace import random_xspace
from tests.conformance.oracle import Question, ask_xprof
from tests.conformance.step_spaces import gpu_space, tpu_space

pytestmark = pytest.mark.conformance

TOOL = "input_pipeline_analyzer"
DATA = Path(__file__).parent.parent / "data"
SEEDS = range(int(os.environ.get("PEAKLINE_CONFORMANCE_SEEDS", "200")))
FAMILIES = ("host", "gpu", "loops", "memory")
"""Families of random XSpaces. Those with TPUs have lines that no TPU writes; those of thread pools
regions within a step's own thread, for which XProf makes an event that counts as work."""
ROUNDING = 1e-15
"""Averages over cores are sums in the order of a hash map there."""


def sample_files():
    """Sample files by name."""
    roots = [DATA, *map(Path, filter(None, os.environ.get("PEAKLINE_SAMPLES", "").split(":")))]
    return {
        f"{root.name}/{path.relative_to(root)}": path
        for root in roots
        for path in sorted(root.glob("**/*.xplane.pb*"))
        if "damaged" not in path.parts and path.stat().st_size
    }


def built_spaces():
    """Built messages by name."""
    found = {}
    for seed in SEEDS:
        found[f"random {seed}"] = random_xspace(seed, FAMILIES[seed % len(FAMILIES)])
        found[f"typed {seed}"] = gpu_space(seed, gpus=seed % 3)
        found[f"tpu {seed}"] = tpu_space(seed, cores=1 + seed % 3, sparse_cores=seed // 3 % 3)
    return found


SAMPLES = sample_files()
TWO_HOSTS = sorted((DATA / "sessions" / "tf2_multihost").glob("**/*.xplane.pb*"))
NAMES = [*SAMPLES, *(f"{family} {seed}" for seed in SEEDS for family in ("random", "typed", "tpu"))]
GROUPS = {
    "sessions of two hosts": lambda seed: [
        tpu_space(seed, cores=2, sparse_cores=0),
        tpu_space(seed + 1, cores=1, sparse_cores=1, host="host1"),
    ],
    "a GPU and a coordinator": lambda seed: [
        gpu_space(seed + gpus, gpus=gpus, host_copies=False) for gpus in range(2)
    ],
    "hosts without devices": lambda seed: [
        gpu_space(seed + n, gpus=0, host_copies=False) for n in range(3)
    ],
}


@dataclass(frozen=True)
class Input:
    """The files of a session, and XProf's tables of it."""

    paths: list[Path]
    tables: list = field(default_factory=list)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Every input, with XProf's answers to all of them from one process."""
    python = os.environ.get("PEAKLINE_PEERS_PYTHON")
    if not python:
        pytest.skip("PEAKLINE_PEERS_PYTHON does not name the peers' interpreter")
    folder = tmp_path_factory.mktemp("inputs")

    def written(spaces):
        """The files of one session; hosts are called as the oracle calls them."""
        own = folder / str(len(list(folder.iterdir())))
        own.mkdir()
        paths = []
        for number, space in enumerate(spaces):
            paths.append(own / f"host{number or ''}.xplane.pb")
            paths[-1].write_bytes(space.SerializeToString())
        return paths

    found = {name: [path] for name, path in SAMPLES.items()}
    found |= {name: written([space]) for name, space in built_spaces().items()}
    found["two hosts"] = TWO_HOSTS
    found |= {
        f"{name} {seed}": written(make(seed)) for name, make in GROUPS.items() for seed in range(8)
    }
    questions = [
        Question(paths[0], memory_profile=False, tools={TOOL: {}}, files=paths[1:])
        for paths in found.values()
    ]
    answers = ask_xprof(python, questions)
    known = {}
    for (name, paths), answer in zip(found.items(), answers, strict=True):
        assert answer.error is None, name
        known[name] = Input(paths, json.loads(answer.tools[TOOL]))
    return known


def own_tables(paths, **parameters):
    """What we answer for the hosts of a session."""
    tool = find_tool(TOOL)
    asked = tool.validated(parameters)
    parts = []
    for path in paths:
        with peakline.open(path) as profile:
            parts.append((profile.host, tool.partial(profile, asked)))
    return json.loads(tool.combine(parts, asked, "json"))


def differences(ours, theirs, where=""):
    """What differs, as ``where: ours, theirs``; numbers to the last digit but one."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            line
            for key in sorted({*ours, *theirs})
            for line in differences(ours.get(key), theirs.get(key), f"{where}.{key}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            line
            for number, (one, other) in enumerate(zip(ours, theirs, strict=True))
            for line in differences(one, other, f"{where}[{number}]")
        ]
    if isinstance(ours, float) and isinstance(theirs, float):
        close = abs(ours - theirs) <= ROUNDING * max(abs(ours), abs(theirs))
        return [] if close else [f"{where}: {ours!r}, {theirs!r}"]
    return [] if ours == theirs else [f"{where}: {ours!r}, {theirs!r}"]


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_and_property_is_theirs(inputs, name):
    assert (
        differences(own_tables(inputs[name].paths, compatible="xprof"), inputs[name].tables) == []
    )


@pytest.mark.parametrize("name", [f"{name} {seed}" for name in GROUPS for seed in range(8)])
def test_every_cell_of_several_hosts_is_theirs(inputs, name):
    assert (
        differences(own_tables(inputs[name].paths, compatible="xprof"), inputs[name].tables) == []
    )


def test_two_hosts_of_one_job_are_put_together_as_theirs(inputs):
    item = inputs["two hosts"]
    assert len(item.paths) == 2
    assert item.tables[1]["rows"]
    assert differences(own_tables(item.paths, compatible="xprof"), item.tables) == []


def test_the_random_steps_are_of_every_kind(inputs):
    columns = (1, 2, 3, 4, 6, 7, 9)
    seen = set()
    for name, item in inputs.items():
        if name.startswith("typed "):
            for row in item.tables[1]["rows"]:
                seen |= {column for column in columns if row["c"][column]["v"] > 0}
    assert seen == set(columns)
