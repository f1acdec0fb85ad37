"""The input_pipeline_analyzer tool: tables, statements, several hosts, formats."""

import json

import pytest
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder
from tests.tools.tpus import tpu_space

from peakline.errors import NotFoundError
from peakline.toolbox.registry import find_tool

MS = 10**9
TOOL = "input_pipeline_analyzer"


@pytest.fixture
def waiting(opened):
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
        return opened(builder, f"{host}.xplane.pb")

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
def test_how_much_the_steps_wait(waiting, wait, conclusion):
    _, steps, *_ = tables(waiting(wait, wait))
    assert column(steps, "infeedTimeMs") == [wait, wait]
    assert column(steps, "stepTimeMs") == [10, 10]
    assert steps["p"]["input_conclusion"].startswith(conclusion)


def test_ops_that_bring_data_are_classified(waiting):
    ops = tables(waiting(4, 2))[2]
    assert column(ops, "opName") == ["Iterator::Root::TFRecord"]
    assert column(ops, "category") == ["Demanded file read"]
    assert column(ops, "timeInMs") == [6.0]
    assert ops["p"]["demanded_file_read_us"] == "6000.000"


def test_of_several_hosts_the_slowest_counts(waiting):
    tool = find_tool(TOOL)
    hosts = [waiting(1, 1, host="a"), waiting(5, 2, host="b", length=12)]
    shown = {}
    for compatible in ("", "xprof"):
        asked = tool.validated({"compatible": compatible})
        parts = [(profile.host, tool.partial(profile, asked)) for profile in hosts]
        shown[compatible] = json.loads(tool.combine(parts, asked, "json"))[1]
    assert column(shown["xprof"], "infeedTimeMs") == [1, 1]
    assert column(shown[""], "infeedTimeMs") == [5, 2]
    assert shown["xprof"]["p"]["steptime_ms_average"] == "12.0"


def test_levels_and_statements_of_bottlenecks(waiting):
    asked = {key: tables(waiting(1, 1), compatible=key)[1]["p"] for key in ("", "xprof")}
    assert asked[""]["kernel_launch_bottleneck"] == "no"
    assert asked["xprof"]["kernel_launch_bottleneck"] == ""


def test_the_deviation_of_one_step(waiting):
    asked = {key: tables(waiting(1), compatible=key)[1]["p"] for key in ("", "xprof")}
    assert asked[""]["outfeed_time_ms_sdv"] == "0.0"
    assert asked["xprof"]["outfeed_time_ms_sdv"] == "-nan"


def test_a_profile_without_steps_says_so(waiting):
    first, steps, _, advice, diagnostics = tables(waiting())
    assert first == {"cols": [], "rows": []}
    assert steps["rows"] == []
    assert len(advice["rows"]) == 5
    assert column(diagnostics, "severity") == ["WARNING"]
    assert column(diagnostics, "message")[0].startswith("No step marker observed")


def test_csv_gives_the_steps(waiting):
    lines = waiting(1, 2).tool(TOOL, format="csv").content.decode().splitlines()
    assert lines[0].startswith('"Step number","Device compute"')
    assert any(line.startswith('"train 1"') for line in lines)


def test_another_host_than_the_file_has(waiting):
    with pytest.raises(NotFoundError, match="no host 'other'"):
        waiting(1).tool(TOOL, host="other")


# TPUs: the core that waits longest for input decides, and the one that computes least.

CORES = (
    [("loop fusion", 4), ("infeed", 3), ("outfeed", 1)],
    [("convolution", 5), ("infeed", 1), ("sparsecorev0 infeed", 2), ("host send", 1)],
)


def averages(table):
    return {
        name.removesuffix("_ms_average"): float(value)
        for name, value in table["p"].items()
        if name.endswith("_ms_average")
    }


@each_row("compatible", ["", "xprof"])
def test_steps_of_tpus(opened, compatible):
    slowest, steps, *_ = tables(opened(tpu_space(*CORES), "host.xplane.pb"), compatible=compatible)
    assert [[cell["v"] for cell in row["c"]] for row in slowest["rows"]] == [
        ["Step number", "0", "1"],
        ["Core name", "host:0", "host:0"],
    ]
    assert column(steps, "stepnum") == ["0", "1"]
    first = {one["id"]: cell["v"] for one, cell in
             zip(steps["cols"], steps["rows"][0]["c"], strict=True)}  # fmt: skip
    assert first.pop("tooltip").endswith("input data = 3.000 ms, Step time = 10.000 ms")
    assert first == {
        "stepnum": "0", "tcComputeTimeMs": 4, "scv0ComputeTimeMs": 2, "scv0InfeedTimeMs": 0,
        "tcInfeedTimeMs": 3, "tcOutfeedTimeMs": 0.5, "tcIdleTimeMs": 0.5, "hostTransferTimeMs": 1,
        "infeedPercentAverage": 20, "infeedPercentMin": 10, "infeedPercentMax": 30,
    }  # fmt: skip
    assert averages(steps) == {
        "active_steptime": 4.5, "host_transfer": 1, "scv0_compute": 2, "scv0_infeed": 0,
        "steptime": 10, "tc_active": 4.5, "tc_compute": 4, "tc_idle": 0.5, "tc_infeed": 3,
        "tc_outfeed": 0.5,
    }  # fmt: skip
    assert "HIGHLY input-bound because 30.0%" in steps["p"]["input_conclusion"]
    assert "MODERATELY output-bound because 5.0%" in steps["p"]["output_conclusion"]
    assert steps["p"]["summary_nextstep"].startswith("Consider using ")


def test_sparse_cores_have_numbers_of_their_own(opened):
    sparse = [("loop fusion", 3), ("convolution", 2)]
    _, steps, *_ = tables(opened(tpu_space(*CORES, sparse=[sparse])))
    assert not {one["id"] for one in steps["cols"]} & {"scv0ComputeTimeMs", "scv0InfeedTimeMs"}
    found = averages(steps)
    assert {name: value for name, value in found.items() if name.startswith("sc")} == {
        "sc_active": 5, "sc_compute": 5, "sc_idle": 5, "sc_infeed": 0, "sc_outfeed": 0,
        "sc_step_time": 10,
    }  # fmt: skip
    # The busier of the two kinds of cores.
    assert (found["tc_active"], found["active_steptime"]) == (4.5, 5)
