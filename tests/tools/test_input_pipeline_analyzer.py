"""The input_pipeline_analyzer tool: tables, statements, several hosts, formats."""

from __future__ import annotations

import json

import pytest
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder

import peakline
from peakline.errors import NotFoundError
from peakline.tools.registry import find_tool

MS = 10**9
TOOL = "input_pipeline_analyzer"


@pytest.fixture
def opened(tmp_path):
    """Opens steps of ``length`` ms that wait ``waits`` ms for input and then compute."""

    def build(*waits, host="host", length=10):
        builder = SpaceBuilder()
        line = builder.host().line("python")
        for step, wait in enumerate(waits):
            at = step * 20 * MS
            line.event("train", at, length * MS, {"_r": 1, "step_num": step})
            line.event("IteratorGetNext", at, wait * MS)
            line.event("Iterator::Root::TFRecord", at, wait * MS)
            line.event("work", at + wait * MS, (length - wait) * MS)
        path = tmp_path / f"{host}.xplane.pb"
        path.write_bytes(builder.space.SerializeToString())
        return peakline.open(path)

    return build


def tables(profile, **parameters):
    """The answer as JSON values."""
    return json.loads(profile.tool(TOOL, **parameters).content)


def column(table, name):
    """The values of one column."""
    place = [one["id"] for one in table["cols"]].index(name)
    return [row["c"][place]["v"] for row in table["rows"]]


@each_row(
    ("wait", "conclusion"),
    [
        (3, "Your program is HIGHLY input-bound because 30.0%"),
        (1, "Your program is MODERATELY input-bound because 10.0%"),
        (0, "Your program is NOT input-bound because only 0.0%"),
    ],
)
def test_how_much_the_steps_wait(opened, wait, conclusion):
    _, steps, *_ = tables(opened(wait, wait))
    assert column(steps, "infeedTimeMs") == [wait, wait]
    assert column(steps, "stepTimeMs") == [10, 10]
    assert steps["p"]["input_conclusion"].startswith(conclusion)


def test_ops_that_bring_data_are_classified(opened):
    ops = tables(opened(4, 2))[2]
    assert column(ops, "opName") == ["Iterator::Root::TFRecord"]
    assert column(ops, "category") == ["Demanded file read"]
    assert column(ops, "timeInMs") == [6.0]
    assert ops["p"]["demanded_file_read_us"] == "6000.000"


def test_of_several_hosts_the_slowest_counts(opened):
    tool = find_tool(TOOL)
    hosts = [opened(1, 1, host="a"), opened(5, 2, host="b", length=12)]
    shown = {}
    for compatible in ("", "xprof"):
        asked = tool.validated({"compatible": compatible})
        parts = [(profile.host, tool.partial(profile, asked)) for profile in hosts]
        shown[compatible] = json.loads(tool.combine(parts, asked, "json"))[1]
    assert column(shown["xprof"], "infeedTimeMs") == [1, 1]
    assert column(shown[""], "infeedTimeMs") == [5, 2]
    assert shown["xprof"]["p"]["steptime_ms_average"] == "12.0"


def test_levels_and_statements_of_bottlenecks(opened):
    asked = {key: tables(opened(1, 1), compatible=key)[1]["p"] for key in ("", "xprof")}
    assert asked[""]["kernel_launch_bottleneck"] == "no"
    assert asked["xprof"]["kernel_launch_bottleneck"] == ""


def test_the_deviation_of_one_step(opened):
    asked = {key: tables(opened(1), compatible=key)[1]["p"] for key in ("", "xprof")}
    assert asked[""]["outfeed_time_ms_sdv"] == "0.0"
    assert asked["xprof"]["outfeed_time_ms_sdv"] == "-nan"


def test_a_profile_without_steps_says_so(opened):
    first, steps, _, advice, diagnostics = tables(opened())
    assert first == {"cols": [], "rows": []}
    assert steps["rows"] == []
    assert len(advice["rows"]) == 5
    assert column(diagnostics, "severity") == ["WARNING"]
    assert column(diagnostics, "message")[0].startswith("No step marker observed")


def test_csv_gives_the_steps(opened):
    lines = opened(1, 2).tool(TOOL, format="csv").content.decode().splitlines()
    assert lines[0].startswith('"Step number","Device compute"')
    assert any(line.startswith('"train 1"') for line in lines)


def test_another_host_than_the_file_has(opened):
    with pytest.raises(NotFoundError, match="no host 'other'"):
        opened(1).tool(TOOL, host="other")
