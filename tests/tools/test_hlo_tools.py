"""hlo_stats, roofline_model and op_profile: what ours say where XProf says nothing, or too much."""

import json
import math

import pytest
from tests.conformance.oracle import OWN_SAMPLES

import peakline
from peakline.errors import NotFoundError
from peakline.schema import HloProto
from peakline.tools import run_tool
from reference.op_spaces import PROGRAM, add_program
from reference.xspace_builder import SpaceBuilder

(JAX,) = (OWN_SAMPLES[0] / "jax_cpu").rglob("*.xplane.pb.gz")
H100 = {
    "device_vendor": "Nvidia", "compute_cap_major": 9, "compute_cap_minor": 0,
    "clock_rate": 1_000_000, "core_count": 100, "memory_bandwidth": 10**12,
}  # fmt: skip


def asked(path, tool, **parameters):
    """The answer as JSON values, and the kinds of warnings."""
    with peakline.open(str(path)) as profile:
        content = json.loads(run_tool(profile, tool, parameters).content)
        return content, [warning.kind for warning in profile.warnings]


def rows_of(path, tool, **parameters):
    """The rows of the answer's first table, by the columns' ids."""
    content, _ = asked(path, tool, **parameters)
    table = content[0] if isinstance(content, list) else content
    names = [column["id"] for column in table["cols"]]
    values = ([cell["v"] for cell in row["c"]] for row in table["rows"])
    return [dict(zip(names, row, strict=True)) for row in values]


@pytest.fixture
def write(tmp_path):
    def written(builder):
        path = tmp_path / "odd.xplane.pb"
        path.write_bytes(builder.space.SerializeToString())
        return path

    return written


def gpu(stats):
    builder = SpaceBuilder()
    add_program(builder, PROGRAM)
    return builder, builder.plane("/device:GPU:0", stats).line("Stream")


def op(name):
    return {"hlo_op": name, "program_id": PROGRAM}


def test_a_cpu_has_instructions():
    rows = rows_of(JAX, "hlo_stats")
    assert rows_of(JAX, "hlo_stats", compatible="xprof") == []
    dot = next(row for row in rows if (row["program_id"], row["hlo_op_name"]) == ("28", "dot.3"))
    # f32[128,256]^T times f32[128,256], ten times.
    assert dot["occurrences"] == 10
    flops = dot["model_flop_rate"] * dot["total_time"] * 1e3
    assert flops == pytest.approx(10 * 2 * 256 * 256 * 128, rel=1e-9)
    with peakline.open(str(JAX)) as profile:
        (own,) = profile.sql(
            "SELECT count(*) n, sum(duration_ps) / 1e6 us FROM events e WHERE name = 'dot.3' AND "
            "event_id IN (SELECT event_id FROM event_stats WHERE name = 'program_id' "
            "AND value = '28')"
        ).to_pylist()
    assert (own["n"], own["us"]) == (10, pytest.approx(dot["total_time"]))


def test_a_cpu_has_a_tree_and_no_peak():
    tree, _ = asked(JAX, "op_profile")
    assert "jit_train_step(28)" in [child["name"] for child in tree["byProgram"]["children"]]
    assert tree["deviceType"] == "CPU_ONLY"
    table, _ = asked(JAX, "roofline_model")
    assert table[0]["p"]["peak_flop_rate"] == ""
    row = rows_of(JAX, "roofline_model")[1]
    assert row["compute_efficiency"] is row["roofline_efficiency"] is None


def test_several_kernels_are_one_execution(write):
    builder, line = gpu(H100)
    for run in range(3):
        for number, kernel in enumerate(("first", "second")):
            line.event(kernel, run * 1000 + 100 * number, 50, op("add.1"))
    path = write(builder)
    (row,) = rows_of(path, "hlo_stats")
    (other,) = rows_of(path, "hlo_stats", compatible="xprof")
    assert (row["occurrences"], other["occurrences"]) == (3, 6)
    # 1024 sums each.
    assert row["model_flop_rate"] * row["total_time"] * 1e3 == pytest.approx(3 * 1024)
    assert other["total_time"] == row["total_time"]


def test_a_rate_above_the_peak_is_marked(write):
    builder, line = gpu(H100)
    line.event("k", 0, 1, op("add.1"))
    line.event("k", 1000, 10**9, op("add.2"))
    rows = {row["hlo_op_name"]: row for row in rows_of(write(builder), "hlo_stats")}
    # 1024 sums of 4 bytes in 1 ps.
    assert rows["add.1"]["rate_above_peak"] == "FLOPs, HBM"
    assert rows["add.2"]["rate_above_peak"] == ""


@pytest.mark.parametrize(
    ("stats", "peak"),
    [
        (H100, "409600"),
        ({**H100, "compute_cap_major": 12}, ""),
        ({**H100, "device_vendor": "Other"}, ""),
        ({**H100, "device_vendor": "AMD", "gpu_device_name": "gfx942"}, "204800"),
        ({**H100, "device_vendor": "AMD", "gpu_device_name": "gfx1100"}, ""),
    ],
)
def test_an_unknown_chip_has_no_peak(write, stats, peak):
    builder, line = gpu(stats)
    line.event("k", 0, 10**6, op("add.1"))
    content, _ = asked(write(builder), "roofline_model")
    assert content[0]["p"]["peak_flop_rate"] == peak


def test_a_call_of_which_nothing_is_known_has_no_flops(write):
    builder, line = gpu(H100)
    line.event("k", 0, 10**6, op("call"))
    metadata = next(p for p in builder.space.planes if p.name == "/host:metadata").event_metadata
    stat = metadata[PROGRAM].stats[0]
    proto = HloProto.FromString(stat.bytes_value)
    made = proto.hlo_module.computations[0].instructions.add()
    made.CopyFrom(proto.hlo_module.computations[0].instructions[0])
    made.name, made.opcode, made.id, made.custom_call_target = "call", "custom-call", 99, "mine"
    stat.bytes_value = proto.SerializeToString()
    path = write(builder)
    (row,) = rows_of(path, "hlo_stats")
    assert row["model_flop_rate"] is None
    assert row["operational_intensity"] is None
    (other,) = rows_of(path, "hlo_stats", compatible="xprof")
    assert other["model_flop_rate"] == 0


def test_copies_take_as_long_as_from_start_to_done(write):
    builder = SpaceBuilder()
    plane = builder.plane("/device:TPU:0", {"device_type_string": "TPU v6 Lite"})
    line = plane.line("XLA Ops")
    names = ("copy-start", "copy-done")
    for number, name in enumerate(names, 1):
        kind = plane.event_id(name)
        stats = {
            "program_id": PROGRAM, "symbol_id": number, "hlo_category": name,
            "bytes_accessed": 2**20,
        }  # fmt: skip
        plane.add_stats(plane.message.event_metadata[kind], stats)
    line.event("copy-start", 0, 10)
    line.event("copy-done", 9_000_000, 1_000_000)
    metadata = add_program(builder, PROGRAM).message.event_metadata[PROGRAM]
    proto = HloProto.FromString(metadata.stats[0].bytes_value)
    computation = proto.hlo_module.computations[0]
    for number, name in enumerate(names):
        made = computation.instructions.add(name=name, opcode=name, id=100 + number)
        made.shape.CopyFrom(computation.instructions[0].shape)
        made.operand_ids.append(computation.instructions[0].id if number == 0 else 100)
    metadata.stats[0].bytes_value = proto.SerializeToString()
    rows = {row["hlo_op_name"]: row for row in rows_of(write(builder), "hlo_stats")}
    # 1 MiB in 10 us.
    assert rows["copy-done"]["hbm_bw"] == pytest.approx(2**20 / 1e-5 / 2**30)
    assert rows["copy-done"]["total_time"] == 1.0
    assert rows["copy-start"]["hbm_bw"] == 0


def test_what_is_chosen():
    rows = rows_of(JAX, "hlo_stats")
    mine = rows_of(JAX, "hlo_stats", program="jit_train_step(28)")
    assert mine == rows_of(JAX, "hlo_stats", program="28")
    assert len(mine) == sum(row["program_id"] == "28" for row in rows)
    assert math.isclose(sum(row["total_self_time_percent"] for row in mine), 100)
    dots = rows_of(JAX, "hlo_stats", category="dot", program="jit_train_step")
    assert {row["category"] for row in dots} == {"dot"}
    busy = rows_of(JAX, "hlo_stats", exclude_idle=True)
    assert math.isclose(busy[-1]["cumulative_total_self_time_percent"], 100)
    assert rows[-1]["cumulative_total_self_time_percent"] < 100
    for parameters in ({"program": "jit_train"}, {"category": "no <b>such"}):
        with pytest.raises(NotFoundError, match="there is: "):
            asked(JAX, "hlo_stats", **parameters)


def test_shares_of_the_roofline_are_called_fractions():
    content, _ = asked(JAX, "roofline_model")
    labels = [column["label"] for column in content[0]["cols"]]
    assert not [label for label in labels if label.endswith("(%)")]
    every = [row for row in rows_of(JAX, "roofline_model") if row["include_infeed_outfeed"]]
    assert every[0]["operation"] == "Program"
    assert sum(row["total_self_time_percent"] for row in every) <= 1 + 1e-9


def test_without_instructions_it_says_what_to_record(write):
    builder = SpaceBuilder()
    builder.host().line("thread").event("work", 0, 100)
    content, warnings = asked(write(builder), "hlo_stats")
    assert content["rows"] == []
    assert warnings == ["no_instructions"]
