"""input_pipeline_analyzer against the real XProf: every table, column, row and property.

Inputs: the samples, two hosts in one session, random XSpaces of other tests, and as many with typed
spans, with GPUs, and with TPUs.
"""

import pytest

from reference.random_xspace import random_xspace
from tests.conformance.oracle import OWN_SAMPLES, SEEDS
from tests.conformance.stats_tables import ours_together, theirs, written
from tests.conformance.step_spaces import gpu_space, tpu_space

TOOL = "input_pipeline_analyzer"
FAMILIES = ("host", "gpu", "loops", "memory")
"""Families of random XSpaces. Those with TPUs have lines that no TPU writes; those of thread pools
regions within a step's own thread, for which XProf makes an event that counts as work."""
ROUNDING = 1e-15
"""Averages over cores are sums in the order of a hash map there."""
RANDOM = {
    "random": lambda seed: random_xspace(seed, FAMILIES[seed % len(FAMILIES)]),
    "typed": lambda seed: gpu_space(seed, gpus=seed % 3),
    "tpu": lambda seed: tpu_space(seed, cores=1 + seed % 3, sparse_cores=seed // 3 % 3),
}
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


def not_theirs(xprof, paths):
    """What differs in the answer about the hosts of a session, the first of it."""
    return differences(ours_together(paths, TOOL, compatible="xprof"), theirs(xprof, TOOL, *paths))[
        :5
    ]


def test_every_sample(xprof):
    assert len(xprof.spaces) > (20 if xprof.is_recorded and xprof.is_whole else 5)
    assert {path: result for path in xprof.spaces if (result := not_theirs(xprof, [path]))} == {}


def test_two_hosts_of_one_job_are_put_together_as_theirs(xprof):
    paths = sorted((OWN_SAMPLES[0] / "tf2_multihost").rglob("*.xplane.pb"))
    assert len(paths) == 2
    assert theirs(xprof, TOOL, *paths)[1]["rows"]
    assert not_theirs(xprof, paths) == []


@pytest.mark.conformance
@pytest.mark.parametrize("kind", RANDOM)
def test_random_spaces(live_xprof, tmp_path, kind):
    for seed in range(SEEDS):
        # A file is called as the peer's program calls its host.
        assert not_theirs(live_xprof, written(tmp_path, {"host": RANDOM[kind](seed)})) == [], seed


@pytest.mark.conformance
@pytest.mark.parametrize("kind", GROUPS)
def test_random_sessions_of_several_hosts(live_xprof, tmp_path, kind):
    for seed in range(8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        hosts = {f"host{n or ''}": space for n, space in enumerate(GROUPS[kind](seed))}
        assert not_theirs(live_xprof, written(folder, hosts)) == [], seed


@pytest.mark.conformance
def test_the_random_steps_are_of_every_kind(live_xprof, tmp_path):
    columns = (1, 2, 3, 4, 6, 7, 9)
    seen = set()
    for path in written(tmp_path, {str(seed): RANDOM["typed"](seed) for seed in range(20)}):
        for row in theirs(live_xprof, TOOL, path)[1]["rows"]:
            seen |= {column for column in columns if row["c"][column]["v"] > 0}
    assert seen == set(columns)
