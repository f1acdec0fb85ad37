"""megascale_stats against XProf's: every column and row, in any order; XProf's have none."""

import json

import pytest

from reference.megascale_spaces import megascale_space
from tests.conformance.oracle import SEEDS
from tests.conformance.stats_tables import difference, ours, rows, written

TOOL = "megascale_stats"
ALL = {"host_name": "ALL_HOSTS"}


def in_order(tables):
    for table in tables:
        table["rows"].sort(key=lambda row: row["c"][0]["v"])
    return tables


def shown(tables):
    """The texts that stand for numbers."""
    return [[cell.get("f") for cell in row["c"]] for table in tables for row in table["rows"]]


def different(xprof, paths):
    result = {}
    for path in paths:
        own = in_order(ours(path, TOOL, compatible="xprof"))
        right = in_order(json.loads(xprof.ask(TOOL, path, options=ALL)))
        if text := difference(own, right):
            result[path.name] = text
        elif shown(own) != shown(right):
            result[path.name] = f"{shown(own)}, not {shown(right)}"
    return result


def test_every_sample(xprof):
    assert different(xprof, xprof.spaces) == {}


@pytest.mark.conformance
def test_random_spaces(live_xprof, tmp_path):
    paths = written(tmp_path, {f"m{seed}": megascale_space(seed) for seed in range(2 * SEEDS)})
    assert different(live_xprof, paths) == {}
    result = [row for path in paths for row in rows(ours(path, TOOL, compatible="xprof")[0])]
    # Else nothing was compared.
    assert len(result) > SEEDS
    assert any(row[14] > 1000 for row in result)
    assert any(0 < row[15] < 2**31 - 1 for row in result)


@pytest.mark.conformance
def test_without_events_of_the_network(live_xprof, tmp_path):
    spaces = {"quiet": megascale_space(3, host=False)}
    (path,) = written(tmp_path, spaces)
    assert different(live_xprof, [path]) == {}
    assert rows(ours(path, TOOL, compatible="xprof")[0]) == []
    assert rows(ours(path, TOOL)[0])
