"""The tools framework_op_stats and kernel_stats: form, limits, several hosts."""

import csv
import io
import json
import pickle

import pytest
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder

from peakline.errors import NotFoundError
from peakline.tools import find_tool, run_tool
from reference.op_spaces import random_op_space


def rows(table):
    return [[cell["v"] for cell in row["c"]] for row in table["rows"]]


def answer(profile, tool="framework_op_stats", **parameters):
    return json.loads(run_tool(profile, tool, parameters).content)


def host_of(*events):
    space = SpaceBuilder()
    line = space.host().line("t")
    for name, offset, duration in events:
        line.event(name, offset, duration)
    return space.space


def test_shares_ranks_and_idle(opened):
    profile = opened(host_of(("a:A", 0, 6_000_000), ("b:B", 8_000_000, 2_000_000)))
    with_idle, without = answer(profile)
    assert [row[:9] for row in rows(with_idle)] == [
        [1.0, "Host", "A", "a", 1.0, 6.0, 6.0, 6.0, 6.0],
        [2.0, "Host", "IDLE", "IDLE", 0.0, 2.0, 0.0, 2.0, 0.0],
        [3.0, "Host", "B", "b", 1.0, 2.0, 2.0, 2.0, 2.0],
    ]
    assert [row[9:13] for row in rows(with_idle)] == [
        [0.0, 0.0, 0.6, 0.6],
        [0.0, 0.0, 0.2, 0.8],
        [0.0, 0.0, 0.2, pytest.approx(1.0)],
    ]
    assert [row[11:13] for row in rows(without)] == [[0.75, 0.75], [0.25, 1.0]]
    assert with_idle["p"] == {"architecture_type": "Unknown", "task_type": "Inference"}


@each_row("name", ["gradient_tape/x:Mul", "gradients_1/y/x:Mul", "f/transpose(g)/mul:mul"])
def test_gradients_make_it_training(opened, name):
    assert answer(opened(host_of((name, 0, 5))))[0]["p"]["task_type"] == "Training"


def test_what_an_op_is_bound_by(opened):
    space = SpaceBuilder()
    stats = {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 100.0}
    plane = space.plane("/device:TPU:0", {"device_type_string": "TPU v5", **stats})
    line, at = plane.line("XLA Ops"), 0
    # In a microsecond: half of the operations it could do, a tenth of the bytes; and none of both.
    for number, (flops, moved) in enumerate(((500_000, 10_000), (10_000, 90_000), (0, 0))):
        metadata = plane.message.event_metadata[plane.event_id(f"op{number}")]
        told = {"program_id": 1, "symbol_id": number + 1, "flops": flops, "bytes_accessed": moved}
        plane.add_stats(metadata, told)
        line.event(f"op{number}", at := at + 2_000_000, 1_000_000)
    found = {row[3]: row for row in rows(answer(opened(space.space))[1])}
    assert [found[f"op{n}"][-2] for n in range(3)] == ["Compute", "HBM", "Unknown"]
    # GFLOP/s twice, GiB/s, FLOPs per byte.
    assert found["op0"][13:17] == [500.0, 500.0, pytest.approx(10e9 / 2**30), 50.0]


def test_nothing_is_cut_unless_it_is_to_be_as_xprof_has_it(opened):
    profile = opened(host_of(*((f"op{n}:Op", n * 1000, 10) for n in range(600))))
    assert len(answer(profile)[0]["rows"]) == 601
    assert profile.warnings == []
    assert len(answer(profile, compatible="xprof")[0]["rows"]) == 500
    assert [(w.kind, w.count) for w in profile.warnings] == [("ops_cut", 101)]


def test_csv_is_the_first_table(opened):
    profile = opened(host_of(("a:A", 0, 5_000_000)))
    text = run_tool(profile, "framework_op_stats", format="csv").content.decode()
    header, first, idle = csv.reader(io.StringIO(text))
    assert header[:4] == ["Rank", "Host/device", "Operation Type", "Operation Name"]
    assert first[:6] == ["1.0", "Host", "A", "a", "1.0", "5.0"]
    assert idle[3] == "IDLE"


@each_row("tool", ["framework_op_stats", "kernel_stats"])
@each_row("compatible", ["", "xprof"])
def test_hosts_together(opened, tool, compatible):
    found = find_tool(tool)
    parameters = found.validated({"compatible": compatible})
    profiles = [opened(random_op_space(seed)) for seed in (5, 11)]
    sent = [pickle.dumps(found.partial(profile, parameters)) for profile in profiles]
    parts = [
        (profile.host, pickle.loads(part))  # noqa: S301 (our own)
        for profile, part in zip(profiles, sent, strict=True)
    ]
    for part, profile in zip(parts, profiles, strict=True):
        alone = found.answer(profile, parameters, "json")
        assert found.combine([part], parameters, "json") == alone
    both = json.loads(found.combine(parts, parameters, "json"))
    counted = 4 if tool == "framework_op_stats" else 10

    def runs(tables):
        table = tables[1] if isinstance(tables, list) else tables
        return sum(row[counted] for row in rows(table) if row[1] != "Device")

    alone = [json.loads(found.combine([part], parameters, "json")) for part in parts]
    assert runs(both) == sum(map(runs, alone)) > 0


def test_another_host_is_not_found(opened):
    profile = opened(host_of(("a:A", 0, 5)))
    for tool in ("framework_op_stats", "kernel_stats"):
        assert run_tool(profile, tool, {"host": "host0"}).content
        with pytest.raises(NotFoundError, match="no host 'other'"):
            run_tool(profile, tool, {"host": "other"})
