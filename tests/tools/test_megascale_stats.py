"""megascale_stats: what collectives between slices sent, and how long devices waited."""

import json

import pytest
from tests.each_row import each_row

import peakline
from peakline.tools import find_tool, run_tool
from peakline.xprof.megascale_stats import _shown_bytes
from peakline.xprof.megascale_stats.ops import group_size
from peakline.xprof.megascale_stats.transfers import sent_bytes
from reference.megascale_spaces import (
    RENDEZVOUS,
    TRANSFER,
    US,
    ProgramBuilder,
    collective_info,
    megascale_space,
)
from reference.xspace_builder import SpaceBuilder, Uint

TOOL = "megascale_stats"


def one_exchange(*, program=7, host=True):
    """Two cores with a collective each: of its 400 µs, 40 are its own ops and 100 another's."""
    builder = SpaceBuilder()
    threads = builder.host().line("network", 5)
    if host:
        threads.event("MegaScale: send", US, US)
        # For core 1, 30 µs longer than its receive began.
        threads.event("device_100001_gid_meeting", 20 * US, 340 * US)
    made = ProgramBuilder("jit_f")
    said = {RENDEZVOUS: "meeting", TRANSFER: "ALL_GATHER"}
    made.exchange(1, said, ("f32", (1000,)))
    made.exchange(2, {RENDEZVOUS: "<b>other</b>"}, ("f32", (10,)))
    metadata = builder.plane("/host:metadata")
    entry = metadata.message.event_metadata[metadata.event_id("jit_f")]
    content = {"Hlo Proto": made.proto.SerializeToString(), "program_id": Uint(program)}
    metadata.add_stats(entry, content)
    for core in range(2):
        plane = builder.plane(f"/device:TPU:{core}")
        plane.line("XLA Modules", 5).event("jit_f(7)", US, 900 * US)
        ops = plane.line("XLA Ops", 5)
        for name, at, length in [
            ("send.1", 10, 10), ("send-done.1", 30, 10), ("send.2", 50, 60), ("recv.1", 150, 10),
            ("send-done.2", 200, 40), ("recv-done.1", 330 + 2 * core, 80),
        ]:  # fmt: skip
            kind = plane.message.event_metadata[plane.event_id(name)]
            kind.display_name = name
            stats = {"hlo_category": f"host {name[:-2]}"}
            if name == "send.1":
                stats["dcn_collective_info"] = collective_info(4, pairs=False)
            plane.add_stats(kind, stats)
            ops.event(name, at * US, length * US)
    return builder.space


def rows(tmp_path, space, **parameters):
    """The rows by rendezvous, and the warnings."""
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space.SerializeToString())
    with peakline.open(str(path)) as profile:
        (table,) = json.loads(run_tool(profile, TOOL, parameters).content)
        ids = [column["id"] for column in table["cols"]]
        found = [dict(zip(ids, (c["v"] for c in row["c"]), strict=True)) for row in table["rows"]]
        return {row["rendezvous_name"]: row for row in found}, profile.warnings


def test_one_exchange(tmp_path):
    found, warnings = rows(tmp_path, one_exchange())
    assert not warnings
    # The other collective never ended.
    assert list(found) == ["meeting"]
    row = found["meeting"]
    assert (row["send_op_name"], row["recv_op_name"]) == ("send.1", "recv-done.1")
    assert row["occurrences"] == 2
    # Of both cores; the other collective's 100 µs are no slack.
    assert row["slack_time"] == pytest.approx(0.321 - 0.03 - 0.1)
    assert row["observed_duration"] == pytest.approx(0.401)
    stalls = [row[f"{op}_stall"] for op in ("send", "send_done", "recv", "recv_done")]
    assert stalls == pytest.approx([0.01, 0.01, 0.01, 0.08])
    assert (row["stall_duration"], row["total_stall"]) == pytest.approx((0.11, 0.22))
    assert row["net_tx_bytes"] == 3000
    assert row["required_bandwidth"] == pytest.approx(3000 * 8 / 191e-6 / 1e9)
    # The host's event of core 1 ended 28 µs after the core began to wait.
    assert row["host_stall"] == "0.028"


def test_as_xprof_says_it(tmp_path):
    found, _ = rows(tmp_path, one_exchange(), compatible="xprof")
    row = found["meeting"]
    # One core, without what the host did; what the receive took is lost.
    assert (row["occurrences"], row["host_stall"], row["recv_stall"]) == (1, "-", 0)
    assert rows(tmp_path, one_exchange(host=False), compatible="xprof")[0] == {}
    assert list(rows(tmp_path, one_exchange(host=False))[0]) == ["meeting"]


def test_programs_that_are_not_there_are_counted(tmp_path):
    found, warnings = rows(tmp_path, one_exchange(program=8))
    assert found == {}
    assert [(w.kind, w.count) for w in warnings] == [("transfers_unknown", 12)]


def test_several_hosts_are_one_table(tmp_path):
    tool = find_tool(TOOL)
    parts = []
    for seed in (1, 3, 5):
        path = tmp_path / f"host{seed}.xplane.pb"
        path.write_bytes(megascale_space(seed).SerializeToString())
        with peakline.open(str(path)) as profile:
            parts.append((path.name, tool.partial(profile, tool.validated({}))))
    answers = [json.loads(tool.combine([p], tool.validated({}), "json"))[0] for p in parts]
    whole = json.loads(tool.combine(parts, tool.validated({}), "json"))[0]

    def column(table, place):
        return {row["c"][0]["v"]: row["c"][place]["v"] for row in table["rows"]}

    for place in (12, 13):
        for name, value in column(whole, place).items():
            assert value == pytest.approx(sum(column(one, place).get(name, 0) for one in answers))


@each_row(
    ("kind", "group", "sent"),
    [
        ("ONE_TO_ONE", 1, 1000), ("ALL_GATHER", 4, 750), ("ALL_REDUCE", 4, 1500),
        ("ALL_TO_ALL", 4, 750), ("REDUCE_SCATTER", 4, 3000), ("ALL_GATHER", 0, 0), ("", 4, 0),
    ],
)  # fmt: skip
def test_what_goes_over_the_network(kind, group, sent):
    assert sent_bytes(1000, group, kind) == sent


@each_row(
    ("content", "size"),
    [
        (b"", 0),
        (collective_info(3, pairs=False), 3),
        (collective_info(9, pairs=True), 1),
        # Cut anywhere, of other kinds of fields, with numbers that never end.
        (collective_info(3, pairs=False)[:-3], 0),
        (bytes([0x09, *range(8), 0x15, *range(4)]), 0),
        (bytes([0x12, *[0xFF] * 40]), 0),
        (bytes([0x0B, 1]), 0),
    ],
)
def test_how_many_exchange(content, size):
    assert group_size(content) == size


@each_row(
    ("size", "text"),
    [(0, "0B"), (1023, "1023B"), (14808, "14.5K"), (9098460, "8.68M"), (2**62, "4.00E")],
)
def test_how_sizes_are_shown(size, text):
    assert _shown_bytes(size) == text
