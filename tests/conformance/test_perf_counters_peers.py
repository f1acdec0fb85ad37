"""perf_counters against XProf's: every column and row, and the texts of the values."""

import random

import pytest

from reference.xspace_builder import Ref, SpaceBuilder, Uint
from tests.conformance.oracle import SEEDS
from tests.conformance.stats_tables import difference, ours, rows, theirs, written

TOOL = "perf_counters"
PLANES = (
    "/device:TPU:0", "/device:TPU:1 SparseCore 0", "/device:GPU:0", "/device:CUSTOM:0", "/host:CPU",
)  # fmt: skip


def counter_space(seed):
    """Devices with or without numbers of chips; counters with every kind of value."""
    rng = random.Random(seed)
    builder = SpaceBuilder()
    for name in PLANES:
        said = {}
        if rng.random() < 0.6:
            said["global_chip_id"] = rng.choice([3, Uint(4)])
        if rng.random() < 0.6:
            said["device_id"] = rng.choice([5, Uint(6)])
        plane = builder.plane(name, said)
        for kernel in rng.sample(["kernel <a>", "B", ""], 2):
            line = plane.line(kernel, 5)
            for number in range(rng.randint(0, 9)):
                stats = {}
                if rng.random() < 0.9:
                    stats["counter_value"] = rng.choice(
                        [0, 255, -2, Uint(2**63 + 5), rng.randrange(2**63), 2.5, "77"]
                    )
                if rng.random() < 0.6:
                    stats["performance_counter_description"] = rng.choice(["text", Ref("Ref"), 7])
                if rng.random() < 0.6:
                    stats["performance_counter_sets"] = rng.choice(["one,two", Ref("x"), None])
                counter = rng.choice(["CounterX", "Éa", "lower", ""])
                line.event(counter, number * 10**6, rng.choice([0, 10]), stats)
    return builder.space


def shown(table):
    return [[cell.get("f") for cell in row["c"]] for row in table["rows"]]


def different(xprof, paths):
    result = {}
    for path in paths:
        own, right = ours(path, TOOL, compatible="xprof"), theirs(xprof, TOOL, path)
        for table in (own, right):
            for row in table["rows"]:
                # The host's name is that of the file, which the peer calls otherwise.
                row["c"][0]["v"] = ""
        if text := difference(own, right):
            result[path.name] = text
        elif shown(own) != shown(right):
            result[path.name] = f"{shown(own)}, not {shown(right)}"
    return result


def test_every_sample(xprof):
    assert different(xprof, xprof.spaces) == {}


@pytest.mark.conformance
def test_random_spaces(live_xprof, tmp_path):
    paths = written(tmp_path, {f"c{seed}": counter_space(seed) for seed in range(SEEDS)})
    assert different(live_xprof, paths) == {}
    assert sum(len(rows(ours(path, TOOL, compatible="xprof"))) for path in paths) > 5 * SEEDS
