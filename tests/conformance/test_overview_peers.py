"""overview_page against XProf's: every table, column, row and property.

Samples, random spaces full of ops, with typed spans, with GPUs and with TPUs, and several hosts
together.
"""

import pytest

from reference.op_spaces import random_op_space
from tests.conformance.oracle import OWN_SAMPLES, SEEDS
from tests.conformance.stats_tables import difference, ours, ours_together, theirs, written
from tests.conformance.step_spaces import gpu_space, tpu_space

TOOL = "overview_page"
DIAGNOSTICS = 6


AT_ZERO = ("device_duty_cycle_", "idle_time_high_confidence_ps")
"""What differs where an instant stands at absolute time 0, which is no time for XProf here; only
in the spaces full of ops, whose clocks begin there."""


def tables(content):
    """The tables; those that are empty are none, and diagnostics are in no order."""
    result = [table for table in content if table]
    result[-1]["rows"].sort(key=str)
    return result


def without_host_count(content):
    """The tables without how many hosts there are: XProf counts the names in the files."""
    result = tables(content)
    for name in ("host_count", "task_count"):
        del result[2]["p"][name]
    return result


def without_duty_cycle(content):
    """The tables without what differs at time 0."""
    properties = content[0]["p"]
    content[0]["p"] = {k: v for k, v in properties.items() if not k.startswith(AT_ZERO)}
    return content


def differences(xprof, paths, shown=tables):
    result = {}
    for path in paths:
        own, other = ours(path, TOOL, compatible="xprof"), theirs(xprof, TOOL, path)
        assert len(own) == len(other) == DIAGNOSTICS + 1
        result[path.name] = difference(shown(own), shown(other))
    return {name: text for name, text in result.items() if text}


def test_every_sample(xprof):
    assert len(xprof.spaces) > (20 if xprof.is_recorded and xprof.is_whole else 5)
    assert differences(xprof, xprof.spaces) == {}


@pytest.mark.conformance
@pytest.mark.parametrize(
    "make",
    [
        lambda seed: gpu_space(seed, gpus=seed % 3),
        lambda seed: tpu_space(seed, cores=1 + seed % 3, sparse_cores=seed // 3 % 3),
    ],
    ids=["spans", "tpus"],
)
def test_random_spaces(live_xprof, tmp_path, make):
    spaces = {f"seed {seed}": make(seed) for seed in range(SEEDS)}
    assert differences(live_xprof, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
def test_random_ops(live_xprof, tmp_path):
    paths = written(tmp_path, {f"seed {seed}": random_op_space(seed) for seed in range(SEEDS)})
    assert differences(live_xprof, paths, lambda content: without_duty_cycle(tables(content))) == {}


@pytest.mark.conformance
def test_what_the_profiler_reported_is_told(live_xprof, tmp_path):
    space = gpu_space(1, gpus=1)
    space.errors.extend(["two", "one", "two"])
    space.warnings.extend(["w"])
    assert differences(live_xprof, written(tmp_path, {"reported": space})) == {}


@pytest.mark.conformance
def test_several_hosts(live_xprof, tmp_path):
    groups = [sorted((OWN_SAMPLES[0] / "tf2_multihost").rglob("*.xplane.pb"))]
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        hosts = {
            f"host{n or ''}": gpu_space(seed + n, gpus=1)
            if seed % 2
            else tpu_space(seed + n, cores=2, sparse_cores=0)
            for n in range(2)
        }
        groups.append(written(folder, hosts))
    for group in groups:
        own = ours_together(group, TOOL, compatible="xprof")
        other = theirs(live_xprof, TOOL, *group)
        assert difference(without_host_count(own), without_host_count(other)) is None, group
