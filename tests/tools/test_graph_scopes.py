"""The ``graph_scopes`` tool against the messages of graphs and programs, read plainly."""

import gzip
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from tests.tools.inlined import inlined, with_functions
from tests.tools.scopes import ask, chains, rows, shown_by

import peakline
from peakline.errors import NotFoundError, UsageError
from peakline.schema import GraphDef, HloProto, RunMetadata, SavedModel

DATA = Path(__file__).parent.parent / "data"
FROZEN = DATA / "graph_def/frozen.pb"
SAVED = DATA / "graph_def/saved_model.pb.gz"
RUN = DATA / "run_metadata/tf1_cnn_2.pb.gz"
PROGRAMS = sorted([*DATA.glob("hlo/*.pb"), *DATA.glob("xla_dump/*.hlo.pb"),
                   *DATA.glob("xla_live_range/*.hlo.pb")])  # fmt: skip


def graph_def(path):
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if path == SAVED:
        return SavedModel.FromString(content).meta_graphs[0].graph_def
    if path == RUN:
        return RunMetadata.FromString(content).partition_graphs[0]
    return GraphDef.FromString(content)


def plain_edges(graph):
    """Source, target and whether it only orders, of every input by names."""
    number = {node.name: place for place, node in enumerate(graph.node)}
    result = []
    for place, node in enumerate(graph.node):
        for text in node.input:
            source = text.removeprefix("^").partition(":")[0]
            result.append((number[source], place, text.startswith("^")))
    return result


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    return with_functions(tmp_path_factory.mktemp("graphs") / "calls.pb")


@pytest.mark.parametrize("path", [FROZEN, SAVED, RUN, None], ids=lambda path: path and path.name)
def test_whatever_is_open_the_picture_adds_up_to_the_graph(path, calls):
    path = path or calls
    graph, profile = graph_def(path), peakline.open(path)
    plain = inlined(graph)
    chain = chains(profile, len(plain.names))
    choose = random.Random(7)
    holders = sorted({item for one in chain for item in one})
    for share in (0.0, 0.3, 0.7, 1.0):
        wanted = [item for item in holders if choose.random() < share]
        result = ask(profile, opened=",".join(map(str, wanted)))
        opened = set(result["opened"])
        stands_for = [shown_by(one, node, opened) for node, one in enumerate(chain)]
        assert result["nodes"] == len(graph.node)
        assert result["nodes"] + result["nodes_inside"] == len(plain.names)
        items = {item["id"]: item for item in rows(result["items"])}
        # An open node is itself beside those that it holds.
        count = Counter(item for item in stands_for if item not in opened)
        assert {
            number: item["nodes"] for number, item in items.items() if not item["is_open"]
        } == dict(count)
        ends = [(one, edge[2]) for edge in plain.edges for one in plain.seen(edge, opened)]
        pairs = Counter(
            (stands_for[source], stands_for[target])
            for (source, target), _ in ends
            if stands_for[source] != stands_for[target]
        )
        joined = rows({name: column for name, column in result["edges"].items()
                       if isinstance(column, list)})  # fmt: skip
        assert {(one["source"], one["target"]): one["edges"] for one in joined} == dict(pairs)
        controls = sum(
            control and stands_for[source] != stands_for[target]
            for (source, target), control in ends
        )
        assert sum(one["controls"] for one in joined) == controls
        assert result["edges"]["left_out"] == 0


@pytest.mark.parametrize("path", [FROZEN, SAVED, RUN], ids=lambda path: path.name)
def test_a_scope_holds_the_nodes_whose_names_begin_with_its_own(path):
    graph, profile = graph_def(path), peakline.open(path)
    chain = chains(profile, len(inlined(graph).names))
    holders = sorted({item for one in chain[: len(graph.node)] for item in one})
    for item in holders:
        result = ask(profile, view="item", item=item)
        every = [node for node, one in enumerate(chain) if item in one]
        assert result["nodes"] == len(every)
        inside = [graph.node[node].name for node in every if node < len(graph.node)]
        if result["kind"] == "scope":
            outer = [one["label"] for one in result["within"]
                     if ask(profile, view="item", item=one["item"])["kind"] == "scope"]  # fmt: skip
            prefix = "/".join([*outer, result["label"]])
            every = [node.name for node in graph.node
                     if node.name == prefix or node.name.startswith(f"{prefix}/")]  # fmt: skip
            assert sorted(inside) == sorted(every)


def test_bytes_of_edges_are_those_of_the_shapes_that_the_model_gives():
    graph, profile = graph_def(SAVED), peakline.open(SAVED)
    width = {1: 4, 3: 4, 9: 8, 10: 1}
    nodes = {node.name: node for node in graph.node}
    checked = 0
    for place, node in enumerate(graph.node):
        result = ask(profile, view="item", item=place)["inputs"]["rows"]
        for text, row in zip(
            [text for text in node.input if text[0] != "^"],
            [row for row in result if not row["is_control"]], strict=True,
        ):  # fmt: skip
            name, _, slot = text.partition(":")
            source = nodes[name]
            assert row["name"] == name
            shapes = source.attr["_output_shapes"].list.shape
            if source.op != "Placeholder" or not shapes:
                continue
            shape = shapes[int(slot or 0)]
            if shape.unknown_rank or any(one.size < 0 for one in shape.dim):
                assert row["bytes"] is None
                continue
            size = width[source.attr["dtype"].type]
            for one in shape.dim:
                size *= one.size
            assert row["bytes"] == size
            checked += 1
        for row in result:
            source = nodes[row["name"]]
            if source.op == "Const" and not row["is_control"]:
                tensor = source.attr["value"].tensor
                size = width.get(tensor.dtype)
                if size:
                    for one in tensor.tensor_shape.dim:
                        size *= one.size
                    assert row["bytes"] == size
                    checked += 1
    assert checked > 20


def test_bytes_of_what_a_run_recorded_add_up():
    graph, profile = graph_def(RUN), peakline.open(RUN)
    run = RunMetadata.FromString(gzip.decompress(RUN.read_bytes()))
    width = {1: 4, 3: 4, 4: 1, 9: 8, 10: 1}
    recorded = {}
    for device in run.step_stats.dev_stats:
        for node in device.node_stats:
            for output in node.output:
                tensor = output.tensor_description
                size = width.get(tensor.dtype)
                if size is None:
                    # Nobody knows how large an element is: what was allocated for it.
                    size = tensor.allocation_description.allocated_bytes
                else:
                    for one in tensor.shape.dim:
                        size *= one.size
                recorded[node.node_name, output.slot] = size
    nodes = {node.name for node in graph.node}
    wanted = 0
    for node in graph.node:
        for text in node.input:
            name, _, slot = text.partition(":")
            if (name, int(slot or 0)) in recorded and name in nodes:
                wanted += recorded[name, int(slot or 0)]
    every = ",".join(map(str, sorted({item for one in chains(profile, len(graph.node))
                                      for item in one})))  # fmt: skip
    result = ask(profile, opened=every)
    by_source = 0
    for one in rows({k: v for k, v in result["edges"].items() if isinstance(v, list)}):
        assert one["bytes"] >= 0
        by_source += one["bytes"]
    constants = 0
    for node in graph.node:
        if node.op == "Const" and (node.name, 0) not in recorded:
            size = width.get(node.attr["dtype"].type, 0)
            for one in node.attr["value"].tensor.tensor_shape.dim:
                size *= one.size
            uses = sum(text == node.name for other in graph.node for text in other.input)
            constants += uses * size
    assert by_source == wanted + constants
    assert by_source > 10**7


def test_a_function_has_its_arguments_and_results():
    profile = peakline.open(FROZEN)
    (name,) = [one["function"] for one in ask(profile, view="graphs")["graphs"] if one["function"]]
    body = graph_def(FROZEN).library.function[0]
    results = ask(profile, graph="", function=name)
    assert results["nodes"] == len(body.node_def) + 2
    ops = Counter(results["items"]["op"])
    assert (ops["_Arg"], ops["_Retval"]) == (1, 1)
    result = results["items"]["id"][results["items"]["op"].index("_Retval")]
    path = ask(profile, graph="", function=name, view="path", item=result)
    assert path["items"]["op"][0] == "_Arg"
    assert path["items"]["id"][-1] == result


def test_a_call_holds_the_nodes_of_its_function_and_calls_in_it_open_too(calls):
    profile, plain = peakline.open(calls), inlined(graph_def(calls))
    for node, (name, op) in enumerate(zip(plain.names, plain.ops, strict=True)):
        result = ask(profile, view="item", item=node)
        assert (result["name"], result["op"]) == (name, op)
        holders = [one["item"] for one in result["within"] if one["item"] < len(plain.names)]
        outer, caller = [], plain.caller[node]
        while caller >= 0:
            outer.insert(0, caller)
            caller = plain.caller[caller]
        assert holders == outer
        # The edges of a call are those between it and what it stands beside.
        known = sorted(edge[0] for edge in plain.edges if edge[1] == node)
        assert sorted(row["item"] for row in result["inputs"]["rows"]) == known
    assert max(Counter(plain.names).values()) > 5


def test_each_body_of_a_loop_and_a_choice_is_named(calls):
    profile, graph = peakline.open(calls), graph_def(calls)
    names = [node.name for node in graph.node]
    for name, wanted in (
        ("net/loop", {"cond: less", "body: step"}),
        ("net/choice", {"then_branch: leaf", "else_branch: outer"}),
    ):
        within = ask(profile, view="item", item=names.index(name))["within"]
        opened = ",".join(str(one["item"]) for one in within)
        result = ask(profile, opened=f"{opened},{names.index(name)}")
        inside = {one["label"] for one in rows(result["items"])
                  if one["parent"] == names.index(name)}  # fmt: skip
        assert inside == wanted


def test_a_function_that_calls_itself_opens_so_many_times(calls):
    profile = peakline.open(calls)
    result = ask(profile, view="search", search="again", limit=500)
    plain = inlined(graph_def(calls))
    (node,) = [at for at, name in enumerate(plain.names) if name == "net/self"]
    levels = 0
    while ask(profile, view="item", item=node)["children"]:
        node = plain.caller.index(node)
        levels += 1
        assert ask(profile, view="item", item=node)["functions"] == ["again"]
    assert levels == 4
    assert result["rows_total"] == 0


def test_bodies_that_would_be_too_many_stay_closed(tmp_path):
    graph = GraphDef()
    for level in range(12):
        function = graph.library.function.add()
        function.signature.name = f"level{level}"
        for number in range(9):
            function.node_def.add(name=f"n{number}", op=f"level{level + 1}")
    graph.node.add(name="all", op="level0")
    path = tmp_path / "many.pb"
    path.write_bytes(graph.SerializeToString())
    result = ask(peakline.open(path))
    assert result["nodes"] == 1
    assert 9**4 < result["nodes_inside"] <= 50_000


def test_search_finds_by_name_op_and_the_frameworks_name():
    profile = peakline.open(SAVED)
    graph = graph_def(SAVED)
    result = ask(profile, view="search", search="MatMul", limit=500)
    wanted = {
        place
        for place, node in enumerate(graph.node)
        if any("matmul" in text.lower() for text in (node.name, node.op, node.device))
    }
    assert {row["item"] for row in result["rows"]} == wanted
    assert result["rows_total"] == len(wanted)
    assert result["rows"][0]["name"].lower().endswith("matmul")


def test_what_is_revealed_is_visible_and_what_is_around_it_is_near():
    profile, graph = peakline.open(SAVED), graph_def(SAVED)
    edges = plain_edges(graph)
    for node in range(0, len(graph.node), 37):
        assert node in ask(profile, opened="", reveal=node)["items"]["id"]
        near = {node}
        for _ in range(2):
            near |= {s for s, t, _ in edges if t in near} | {t for s, t, _ in edges if s in near}
        result = ask(profile, view="around", item=node, depth=2)
        # What is inside a call is around it too.
        own = {item for item in result["items"]["id"] if item < len(graph.node)}
        assert own <= near
        assert result["more"] or own == near
        among = {(s, t) for s, t, _ in edges if {s, t} <= own and s != t}
        ends = zip(result["edges"]["source"], result["edges"]["target"], strict=True)
        assert {(s, t) for s, t in ends if {s, t} <= own} == among


def test_a_path_goes_along_edges_and_no_shorter_one_is_there():
    profile, graph = peakline.open(SAVED), graph_def(SAVED)
    data = [(s, t) for s, t, control in plain_edges(graph) if not control]
    inputs = {place for place, node in enumerate(graph.node) if node.op == "Placeholder"}
    for node in range(0, len(graph.node), 23):
        path = ask(profile, view="path", item=node)["items"]["id"]
        assert path[-1] == node
        assert all(pair in data for pair in pairwise(path))
        front, steps = {node}, 0
        while front and not front & inputs and steps < 100:
            front, steps = {s for s, t in data if t in front}, steps + 1
        if front & inputs:
            assert len(path) == steps + 1


def large(directory, nodes=30_000):
    """A graph whose scopes hold very many: a series, one op, and names that have nothing alike."""
    made = GraphDef()
    for number in range(nodes):
        made.node.add(name=f"net/layer_{number // 10}/op_{number % 10}", op="Relu")
    for number in range(3000):
        made.node.add(name=f"flat/{number:x}q{chr(97 + number % 26) * (number % 7)}", op="Const")
    path = directory / "large.pb"
    path.write_bytes(made.SerializeToString())
    return path


def test_no_answer_is_large_however_many_nodes_a_scope_holds(tmp_path):
    profile = peakline.open(large(tmp_path))
    seen = 0
    waiting, opened = ask(profile, opened="")["items"]["id"], []
    choose = random.Random(5)
    assert len(waiting) == 2
    while waiting and seen < 60:
        item = waiting.pop(choose.randrange(len(waiting)))
        result = ask(profile, view="item", item=item)
        if not result["children"]:
            continue
        seen += 1
        assert result["children"] <= 60
        outer = [one["item"] for one in result["within"]]
        picture = ask(profile, opened=",".join(map(str, [*outer, item])))
        inside = [one for one in rows(picture["items"]) if one["parent"] == item]
        assert sum(one["nodes"] for one in inside) == result["nodes"]
        waiting += [one["id"] for one in inside]
        opened += [*outer, item]
    every = ask(profile, opened=",".join(map(str, dict.fromkeys(opened))))
    assert len(every["items"]["id"]) <= every["most_items"]
    assert every["refused"]


def test_quick_leaves_out_sizes_of_a_large_graph_until_they_are_known(tmp_path):
    profile = peakline.open(large(tmp_path, 60_000))
    first = ask(profile, quick=True)
    assert first["sizes_left_out"]
    assert not first["has_sizes"]
    assert not ask(profile, sizes=False)["sizes_left_out"]
    whole = ask(profile)
    assert not whole["sizes_left_out"]
    assert {**first, "sizes_left_out": False, "has_sizes": whole["has_sizes"], "edges": 0} == {
        **whole, "edges": 0,
    }  # fmt: skip
    assert first["edges"]["source"] == whole["edges"]["source"]
    assert ask(profile, quick=True) == whole
    assert not ask(peakline.open(large(tmp_path, 1000)), quick=True)["sizes_left_out"]


def test_what_is_wrong_is_one_clear_error():
    profile = peakline.open(FROZEN)
    with pytest.raises(NotFoundError, match="no graph 'other'"):
        ask(profile, graph="other")
    with pytest.raises(NotFoundError, match="no item 99999"):
        ask(profile, view="item", item=99999)
    with pytest.raises(UsageError, match="give one"):
        ask(profile, view="path")
    with pytest.raises(UsageError, match="only compiled programs"):
        ask(profile, view="schedule")


def test_the_overview_counts_what_the_file_holds():
    profile, graph = peakline.open(SAVED), graph_def(SAVED)
    result = ask(profile, view="overview")
    ops = Counter(node.op for node in graph.node)
    assert result["nodes"] == len(graph.node)
    assert result["edges"] == sum(len(node.input) for node in graph.node)
    assert {one["text"]: one["nodes"] for one in result["ops"]}.items() <= ops.items()
    assert result["ops"][0]["nodes"] == max(ops.values())
    assert (result["functions_total"], result["broken_total"]) == (1, 0)
    path = PROGRAMS[0]
    profile, proto = peakline.open(path), HloProto.FromString(path.read_bytes())
    result = ask(profile, view="overview")
    made = [one for part in proto.hlo_module.computations for one in part.instructions]
    opcodes = Counter(one.opcode for one in made)
    assert result["program"]["instructions"] == len(made)
    assert {one["text"]: one["nodes"] for one in result["ops"]}.items() <= opcodes.items()


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
        result = ask(profile, opened=",".join(map(str, wanted)))
        opened = set(result["opened"])
        stands_for = [shown_by(one, node, opened) for node, one in enumerate(chain)]
        items = {item["id"]: item for item in rows(result["items"])}
        closed = sum(item["nodes"] for item in items.values() if not item["is_open"])
        # An open instruction is itself a node beside those that it holds.
        assert closed + sum(item < len(made) for item in opened) == len(made)
        inside = sum(len(one.operand_ids) + len(one.control_predecessor_ids) for one in made)
        joined = rows({k: v for k, v in result["edges"].items() if isinstance(v, list)})
        assert sum(one["edges"] for one in joined) <= inside == result["edges_total"]
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
        result = ask(profile, reveal=number[bodies[one.called_computation_ids[0]].root_id])
        if place not in result["opened"]:
            continue
        ends = set(zip(result["edges"]["source"], result["edges"]["target"], strict=True))
        body = bodies[one.called_computation_ids[0]]
        parameters = {
            inner.parameter_number: number[inner.id]
            for inner in body.instructions
            if inner.opcode == "parameter"
        }
        visible = set(result["items"]["id"])
        for at, operand in enumerate(one.operand_ids):
            source = number[operand]
            if source in visible and source not in result["opened"]:
                assert (source, parameters[at]) in ends
        users = [user for user, other in enumerate(made) if one.id in other.operand_ids]
        for user in users:
            if user in visible and user not in result["opened"]:
                assert (number[body.root_id], user) in ends


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_the_schedule_is_the_programs_and_its_peak_the_peak_of_the_table(path):
    profile, proto = peakline.open(path), HloProto.FromString(path.read_bytes())
    module = proto.hlo_module
    result = ask(profile, view="schedule", limit=2000, width=4096)
    order = {row["name"]: place for place, row in enumerate(result["rows"])}
    (row,) = profile.table("hlo_modules").to_pylist()
    if row["peak_bytes"] is None:
        assert result["peak_bytes"] is None
    elif row["peak_found_by"] != "allocations":
        assert result["peak_bytes"] == row["peak_bytes"]
        assert max(result["curve"]["live_bytes"]) == row["peak_bytes"]
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
    result = ask(profile, view="schedule", limit=2000)
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
    shown = {row["name"]: row["live_bytes"] for row in result["rows"]}
    lasting = result["lasting_bytes"]
    assert any(name in shown for name in most)
    for name, bytes_ in most.items():
        if name in shown:
            assert shown[name] >= lasting + bytes_
    assert max(shown.values()) == lasting + max(most.values())
