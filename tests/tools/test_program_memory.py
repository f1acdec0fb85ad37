"""``program_memory`` against XLA's own message, as plain objects, replayed event by event."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.reference.hlo import Reference
from tests.reference.hlo_memory import replay

import peakline
from peakline.errors import NotFoundError
from peakline.schema import HloProto

DATA = Path(__file__).parents[1] / "data"
DUMPS = sorted([*DATA.glob("hlo/*.cpu_after*.hlo.pb"), *DATA.glob("xla_live_range/*.hlo.pb"),
                *DATA.glob("xla_dump/*.cpu_after*.hlo.pb")])  # fmt: skip


def ask(path, **parameters):
    with peakline.open(path) as profile:
        return json.loads(profile.tool("program_memory", **parameters).content)


def plain(path):
    """By opcode what the temporaries and all else hold at the peak of a program of one heap."""
    proto = HloProto.FromString(path.read_bytes())
    program = Reference(proto)
    buffers = {row["native_id"]: row for row in program.tables["hlo_buffers"]}
    size = {number: row["bytes"] for number, row in buffers.items()}
    opcodes = {row: one.opcode for row, _, one in program.instructions}
    (trace,) = proto.buffer_assignment.heap_simulator_traces
    heap = replay(trace.events, size)
    found: Counter[str] = Counter()
    inside = {buffers[event.buffer_id]["allocation"] for event in trace.events}
    root: dict[int, int] = {}
    for event in trace.events:
        if event.kind == 2:
            other = event.share_with_canonical_id
            root[event.buffer_id] = root.get(other, other)
    for number in heap.at_peak:
        held = size[root.get(number, number)]
        found[opcodes[buffers[number]["instruction_id"]]] += held
    largest: dict[int, dict] = {}
    for row in sorted(program.tables["hlo_buffers"], key=lambda row: row["bytes"]):
        if row["allocation"] not in inside and row["kind"] != "thread-local":
            largest[row["allocation"]] = row
    return found, sum(row["allocation_bytes"] for row in largest.values()), max(heap.live)


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.name)
@pytest.mark.parametrize("by", ["opcode", "scope", "source"])
def test_layers_add_up_to_what_is_live_at_every_place(path, by):
    answer = ask(path, by=by, width=50)
    assert answer["reason"] is None
    assert [sum(column) for column in zip(*answer["bytes"], strict=True)] == answer["live_bytes"]
    assert max(answer["live_bytes"]) == answer["peak_bytes"]
    at = answer["place"].index(answer["peak"])
    assert answer["live_bytes"][at] == answer["peak_bytes"]
    assert [values[at] for values in answer["bytes"]] == [
        layer["peak_bytes"] for layer in answer["layers"]
    ]
    assert all(value >= 0 for values in answer["bytes"] for value in values)
    assert answer["tree"]["bytes"][0] == answer["peak_bytes"]
    assert sum(row["bytes"] for row in answer["rows"]) == answer["peak_bytes"]
    assert len(answer["rows"]) == answer["rows_total"]
    if by == "opcode":
        held: Counter[str] = Counter()
        for row in answer["rows"]:
            held[row["opcode"]] += row["bytes"]
        layers = {layer["key"]: layer["peak_bytes"] for layer in answer["layers"]}
        assert {key: size for key, size in layers.items() if size and key} == {
            key: size for key, size in held.items() if size and key in layers
        }


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.name)
def test_the_peak_by_opcode_is_that_of_the_trace(path):
    if len(HloProto.FromString(path.read_bytes()).buffer_assignment.heap_simulator_traces) != 1:
        pytest.skip("the plain computation is of one heap")
    temporary, lasting, most = plain(path)
    answer = ask(path)
    assert answer["peak_bytes"] == lasting + most
    own: Counter[str] = Counter()
    for row in answer["rows"]:
        if row["kind"] == "temporary" and row["opcode"]:
            own[row["opcode"]] += row["bytes"]
    for opcode, size in temporary.items():
        assert own[opcode] >= size


def test_rows_name_nodes_of_the_graph():
    path = DATA / "xla_live_range"
    answer = ask(path)
    with peakline.open(path) as profile:
        for row in answer["rows"][:5]:
            if row["item"] is None:
                continue
            found = json.loads(
                profile.tool(
                    "graph_scopes", view="item", graph=answer["program"], item=row["item"]
                ).content
            )
            assert found["name"].rpartition("/")[2] == row["instruction"]


def test_a_program_that_is_not_there_is_an_error():
    with pytest.raises(NotFoundError, match="no program 'x'"):
        ask(DATA / "xla_live_range", program="x")


def test_a_profile_without_programs_has_none():
    answer = ask(DATA / "memory_log" / "session_default_allocator.log.gz")
    assert answer["programs"] == []
    assert answer["program"] is None
