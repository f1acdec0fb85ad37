"""The ``graph_scopes`` tool of compiled programs against their messages, read plainly."""

import random
from collections import Counter
from pathlib import Path

import pytest
from tests.tools.scopes import ask, chains, rows, shown_by

import peakline
from peakline.schema import HloProto

DATA = Path(__file__).parent.parent / "data"
PROGRAMS = sorted([*DATA.glob("hlo/*.pb"), *DATA.glob("xla_dump/*.hlo.pb"),
                   *DATA.glob("xla_live_range/*.hlo.pb")])  # fmt: skip


def instructions(proto):
    """All instructions in order, and the number of each by its id."""
    made = [one for part in proto.hlo_module.computations for one in part.instructions]
    return made, {one.id: place for place, one in enumerate(made)}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_whatever_is_open_the_picture_adds_up_to_the_program(path):
    profile, proto = peakline.open(path), HloProto.FromString(path.read_bytes())
    made, number = instructions(proto)
    chain = chains(profile, len(made))
    root_of, callers = {}, {}
    for part in proto.hlo_module.computations:
        root_of[part.id] = number[part.root_id]
    for place, one in enumerate(made):
        for callee in one.called_computation_ids:
            callers.setdefault(callee, set()).add(place)
    choose = random.Random(3)
    holders = sorted({item for one in chain for item in one})
    for share in (0.0, 0.5, 1.0):
        wanted = [item for item in holders if choose.random() < share]
        found = ask(profile, opened=",".join(map(str, wanted)))
        opened = set(found["opened"])
        stands_for = [shown_by(one, node, opened) for node, one in enumerate(chain)]
        items = {item["id"]: item for item in rows(found["items"])}
        closed = sum(item["nodes"] for item in items.values() if not item["is_open"])
        # An open instruction is itself a node beside those that it holds.
        assert closed + sum(item < len(made) for item in opened) == len(made)
        inside = sum(len(one.operand_ids) + len(one.control_predecessor_ids) for one in made)
        joined = rows({k: v for k, v in found["edges"].items() if isinstance(v, list)})
        assert sum(one["edges"] for one in joined) <= inside == found["edges_total"]
        if not opened:
            pairs = Counter(
                (stands_for[number[operand]], stands_for[place])
                for place, one in enumerate(made)
                for operand in [*one.operand_ids, *one.control_predecessor_ids]
                if stands_for[number[operand]] != stands_for[place]
            )
            assert {(one["source"], one["target"]): one["edges"] for one in joined} == dict(pairs)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_an_open_fusion_gets_its_operands_at_its_parameters(path):
    profile, proto = peakline.open(path), HloProto.FromString(path.read_bytes())
    made, number = instructions(proto)
    bodies = {part.id: part for part in proto.hlo_module.computations}
    for place, one in enumerate(made):
        if one.opcode != "fusion":
            continue
        found = ask(profile, reveal=number[bodies[one.called_computation_ids[0]].root_id])
        if place not in found["opened"]:
            continue
        ends = set(zip(found["edges"]["source"], found["edges"]["target"], strict=True))
        body = bodies[one.called_computation_ids[0]]
        parameters = {
            inner.parameter_number: number[inner.id]
            for inner in body.instructions
            if inner.opcode == "parameter"
        }
        visible = set(found["items"]["id"])
        for at, operand in enumerate(one.operand_ids):
            source = number[operand]
            if source in visible and source not in found["opened"]:
                assert (source, parameters[at]) in ends
        users = [user for user, other in enumerate(made) if one.id in other.operand_ids]
        for user in users:
            if user in visible and user not in found["opened"]:
                assert (number[body.root_id], user) in ends


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_the_schedule_is_the_programs_and_its_peak_the_peak_of_the_table(path):
    profile, proto = peakline.open(path), HloProto.FromString(path.read_bytes())
    module = proto.hlo_module
    found = ask(profile, view="schedule", limit=2000, width=4096)
    order = {row["name"]: place for place, row in enumerate(found["rows"])}
    (row,) = profile.table("hlo_modules").to_pylist()
    if row["peak_bytes"] is None:
        assert found["peak_bytes"] is None
    elif row["peak_found_by"] != "allocations":
        assert found["peak_bytes"] == row["peak_bytes"]
        assert max(found["curve"]["live_bytes"]) == row["peak_bytes"]
    for part in module.computations:
        sequence = module.schedule.sequences.get(part.id)
        if sequence is None:
            continue
        names = {one.id: one.name for one in part.instructions}
        places = [order[names[one]] for one in sequence.instruction_ids if names[one] in order]
        assert places == sorted(places)


def heap_programs():
    """The programs with one simulated heap."""
    return [
        path
        for path in PROGRAMS
        if len(HloProto.FromString(path.read_bytes()).buffer_assignment.heap_simulator_traces) == 1
    ]


@pytest.mark.parametrize("path", heap_programs(), ids=lambda path: path.name)
def test_what_is_live_follows_the_events_of_the_heap(path):
    profile, proto = peakline.open(path), HloProto.FromString(path.read_bytes())
    found = ask(profile, view="schedule", limit=2000)
    size = {one.id: one.size for one in proto.buffer_assignment.logical_buffers}
    (trace,) = proto.buffer_assignment.heap_simulator_traces
    live, root, users, most = 0, {}, Counter(), {}
    for event in trace.events:
        if event.kind == 0:
            root[event.buffer_id] = event.buffer_id
            live += size[event.buffer_id]
            users[event.buffer_id] = 1
        elif event.kind == 2:
            shared = root.get(event.share_with_canonical_id, event.share_with_canonical_id)
            if users[shared] == 0:
                live += size[shared]
            root[event.buffer_id] = shared
            users[shared] += 1
        else:
            shared = root[event.buffer_id]
            users[shared] -= 1
            if users[shared] == 0:
                live -= size[shared]
        if event.kind != 1:
            # An end has the name of what made the value, not of what used it last.
            name = event.instruction_name
        most[name] = max(most.get(name, 0), live)
    shown = {row["name"]: row["live_bytes"] for row in found["rows"]}
    lasting = found["lasting_bytes"]
    assert any(name in shown for name in most)
    for name, bytes_ in most.items():
        if name in shown:
            assert shown[name] >= lasting + bytes_
    assert max(shown.values()) == lasting + max(most.values())
