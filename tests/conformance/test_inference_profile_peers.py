"""inference_profile against XProf's: every table, column and row.

Samples, of which none serves requests; random servers that mark their requests in every way that
XProf knows, with batches or without; several hosts together; every order of the rows.
"""

import json
import random

import pytest

import peakline
from peakline.tools import run_tool
from reference.serving_spaces import STYLES, US, RandomServer
from reference.xspace_builder import SpaceBuilder
from tests.conformance.oracle import SEEDS
from tests.conformance.stats_tables import difference, ours, ours_together, rows, theirs, written

TOOL = "inference_profile"


def random_servers():
    """By name; small and large ones of every style."""
    spaces = {}
    for seed in range(SEEDS // 2):
        rng = random.Random(seed)
        for style in STYLES:
            requests = rng.choice([1, 2, 7, 12, 70, 300])
            server = RandomServer(seed, style, requests=requests, batching=(rng.random() < 0.7))
            spaces[f"{style}{seed}"] = server.space
    return spaces


def in_order(tables):
    """The answer with the tensors' rows in an order: XProf's have none."""
    for table in tables:
        if table["cols"][0]["id"] == "id":
            table["rows"].sort(key=lambda row: row["c"][1]["v"])
            for row in table["rows"]:
                row["c"][0]["v"] = 0.0
    return tables


def different(xprof, paths, **options):
    result = {}
    for path in paths:
        own = in_order(ours(path, TOOL, compatible="xprof", **options))
        right = in_order(json.loads(xprof.ask(TOOL, path, options=options)))
        if text := difference(own, right):
            result[path.name] = text
    return result


def test_every_sample(xprof):
    assert len(xprof.spaces) > 5
    assert different(xprof, xprof.spaces) == {}


@pytest.mark.conformance
def test_random_servers(live_xprof, tmp_path):
    paths = written(tmp_path, random_servers())
    assert different(live_xprof, paths) == {}
    answers = [ours(path, TOOL, compatible="xprof") for path in paths]
    # Else next to nothing was compared.
    assert sum(len(table["rows"]) for tables in answers for table in tables) > 10 * len(paths)
    for column in ("device_compute", "host_runtime", "host_preprocessing", "idle time"):
        assert any(
            row[[c["id"] for c in tables[1]["cols"]].index(column)] > 0
            for tables in answers
            for row in rows(tables[1])
        ), column


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("request_column", "batch_column"),
    [("Latency", "Latency"), ("Request delay for batching", "Batching delay")],
)
def test_orders(live_xprof, tmp_path, request_column, batch_column):
    spaces = {
        style: RandomServer(4, style, requests=150, batching=True).space
        for style in ("batching", "root", "tfrt")
    }
    paths = written(tmp_path, spaces)
    options = {"request_column": request_column, "batch_column": batch_column}
    assert different(live_xprof, paths, **options) == {}


@pytest.mark.conformance
def test_several_hosts(live_xprof, tmp_path):
    spaces = {
        f"host{seed}": RandomServer(seed, "root", requests=20, batching=False).space
        for seed in (3, 5, 8)
    }
    paths = written(tmp_path, spaces)
    right = in_order(theirs(live_xprof, TOOL, *paths))
    assert difference(in_order(ours_together(paths, TOOL, compatible="xprof")), right) is None


@pytest.mark.conformance
def test_spans_without_length(live_xprof, tmp_path):
    """The case of docs/differences/inference_profile.md: a transfer without length."""
    builder = SpaceBuilder()
    line = builder.host().line("thread", 5)
    line.event("TfrtModelRun", US, 100 * US, {"_r": 1})
    line.event("TransferH2DRequest", 20 * US, 0)
    line.event("CompleteCallbacks", 30 * US, US)
    (path,) = written(tmp_path, {"transfer": builder.space})
    assert different(live_xprof, [path]) == {}
    place = [column["id"] for column in ours(path, TOOL)[1]["cols"]].index("data_transfer_h2d")
    assert rows(ours(path, TOOL, compatible="xprof")[1])[0][place] > 0.08
    assert rows(ours(path, TOOL)[1])[0][place] == 0.0


@pytest.mark.conformance
def test_the_first_batch_is_the_one_that_began_first(live_xprof, tmp_path):
    """XProf takes the one with the lowest number, here the one that a level put first."""
    builder = SpaceBuilder()
    host = builder.host()
    front, back, other = (host.line(name, 5) for name in ("front", "back", "other"))
    front.event("Predict", US, 10 * US, {"_r": -1, "model_id": "m"})
    front.event("Schedule", 2 * US, US, {"_pt": 9, "_p": 1})
    front.event("Schedule", 4 * US, US, {"_pt": 9, "_p": 2})
    back.event("ProcessBatch", 30 * US, 50 * US, {"_ct": 9, "_c": 1})
    other.event("ProcessBatch", 40 * US, 90 * US, {"_ct": 9, "_c": 2})
    (path,) = written(tmp_path, {"split": builder.space})
    assert different(live_xprof, [path]) == {}
    with peakline.open(str(path)) as profile:
        own = json.loads(run_tool(profile, TOOL).content)[1]
    assert rows(own)[0][2] == pytest.approx(0.129)
    assert rows(ours(path, TOOL, compatible="xprof")[1])[0][2] == pytest.approx(0.079)
