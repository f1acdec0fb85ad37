"""Memory of compiled programs, against XLA's own message as plain objects."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.conformance.oracle import OWN_SAMPLES
from tests.reference.hlo import Reference
from tests.reference.hlo_memory import replay
from tests.reference.odd_assignments import ALLOC, FREE, SHARE, TUPLE, odd_program, with_heap
from tests.reference.program_memory import MIB, curve_of

import peakline
from peakline.errors import NotFoundError, UsageError
from peakline.hlo.memory import memory_of
from peakline.schema import HloProto
from peakline.tools import available_tools, run_tool
from reference.op_spaces import PROGRAM, add_program
from reference.xspace_builder import SpaceBuilder

SIZES = [70_000, 30_000, 20_000]
PLAIN = [(ALLOC, 1), (ALLOC, 2), (FREE, 1), (ALLOC, 3), (FREE, 2), (FREE, 3)]


@pytest.fixture
def opened(tmp_path):
    """Opens a program as a file of its own."""

    def open_(program, name="module.hlo_proto.pb"):
        path = tmp_path / name
        path.write_bytes(program.SerializeToString())
        return peakline.open(str(path))

    return open_


def ask(profile, **parameters):
    name = profile.programs().label(0)
    return json.loads(profile.tool("memory_viewer", **{"module_name": name, **parameters}).content)


def kinds(profile):
    return {warning.kind: warning.count for warning in profile.warnings}


def check(answer, wanted):
    """Ours against the plain reader, in bytes."""
    for key, name in (
        ("peakHeapMib", "peak"), ("indefiniteBufferAllocationMib", "lasting"),
        ("totalBufferAllocationMib", "total"), ("entryComputationParametersMib", "parameters"),
        ("maybeLiveOutMib", "outputs"), ("nonReusableMib", "reserved"),
    ):  # fmt: skip
        assert answer.get(key, 0) * MIB == wanted[name], key
    assert [round(size * MIB) for size in answer.get("heapSizes", [])] == wanted["points"]
    assert answer.get("hloInstructionNames", []) == wanted["names"]
    # What is live at the peak is all of it.
    shown = [round(one["logicalBufferSizeMib"] * MIB) for one in answer.get("maxHeap", [])]
    assert sum(shown) == wanted["peak"]
    assert sorted(shown, reverse=True) == [
        round(one["logicalBufferSizeMib"] * MIB) for one in answer.get("maxHeapBySize", [])
    ]


@pytest.mark.parametrize("damage", [False, True], ids=["sound", "damaged"])
@pytest.mark.parametrize("programs", [15, pytest.param(60, marks=pytest.mark.nightly)])
def test_odd_programs_are_as_the_plain_reader_says(opened, damage, programs):
    curves = strange = 0
    for seed in range(programs):
        program = odd_program(seed, damage=damage)
        for space in (0, 1, 5):
            with opened(program) as profile:
                wanted = curve_of(program, space)
                check(ask(profile, memory_space=str(space)), wanted)
                assert kinds(profile).get("hlo_heap", 0) == wanted["strange"]
                curves += bool(wanted["points"])
                strange += wanted["strange"]
    assert curves > programs
    assert (strange > 0) == damage


def test_every_program_of_the_samples():
    seen = curves = 0
    for path in sorted(p for folder in OWN_SAMPLES for p in folder.rglob("jax*.xplane.pb.gz")):
        with peakline.open(str(path)) as profile:
            programs = profile.programs()
            for number in range(len(programs)):
                wanted = curve_of(HloProto.FromString(programs.data(number).tobytes()))
                label = programs.label(number)
                answer = json.loads(profile.tool("memory_viewer", module_name=label).content)
                check(answer, wanted)
                assert (
                    round(answer.get("peakHeapMib", 0) * MIB)
                    == memory_of(profile, number).peak_bytes
                )
                seen += 1
                curves += bool(wanted["points"])
    assert seen > 30
    assert curves > 3


def test_an_example(opened):
    with opened(with_heap(PLAIN, SIZES)) as profile:
        assert "memory_viewer" in available_tools(profile)
        answer = ask(profile)
    assert [round(size * MIB) for size in answer["heapSizes"]] == [
        0, 70_000, 100_000, 30_000, 50_000, 20_000, 0,
    ]  # fmt: skip
    assert answer["peakHeapSizePosition"] == 1
    assert [one["instructionName"] for one in answer["maxHeap"]] == ["i1", "i2"]
    assert answer["logicalBufferSpans"] == {
        "1": {"limit": 2}, "2": {"start": 1, "limit": 4}, "3": {"start": 3, "limit": 5},
    }  # fmt: skip
    assert answer["maxHeap"][0]["label"] == "i1: pred[70000] # "


def test_a_value_that_takes_over_memory_is_shown_in_place_of_the_other(opened):
    events = [(ALLOC, 1), (SHARE, 2, 1), (FREE, 1), (ALLOC, 3), (FREE, 2), (FREE, 3)]
    with opened(with_heap(events, SIZES)) as profile:
        answer = ask(profile)
    assert [one["instructionName"] for one in answer["maxHeap"]] == ["i2", "i3"]
    assert [one["logicalBufferSizeMib"] * MIB for one in answer["maxHeap"]] == [70_000, 20_000]
    # Drawn one after the other: the memory is never drawn twice.
    blocks = {one["name"]: one for one in answer["bufferBlocks"]}
    assert blocks["i1"]["endStep"] == blocks["i2"]["startStep"] == 1
    assert blocks["i2"]["endStep"] == 4


def test_every_heap_of_a_space_counts(opened):
    """XProf shows the first alone: 100,000 bytes."""
    program = with_heap(PLAIN, SIZES)
    other = with_heap([(ALLOC, 1), (FREE, 1)], [50_000])
    moved = program.buffer_assignment.buffer_allocations.add(index=1, size=50_000)
    moved.assigned.add(logical_buffer_id=9, size=50_000)
    made = program.hlo_module.computations[0].instructions.add(name="i9", opcode="add", id=9)
    made.shape.CopyFrom(other.hlo_module.computations[0].instructions[0].shape)
    value = program.buffer_assignment.logical_buffers.add(id=9, size=50_000)
    value.defined_at.instruction_id = 9
    trace = program.buffer_assignment.heap_simulator_traces.add()
    trace.events.add(kind=ALLOC, buffer_id=9)
    trace.events.add(kind=FREE, buffer_id=9)
    with opened(program) as profile:
        answer = ask(profile)
        assert answer["peakHeapMib"] * MIB == 150_000
        assert max(answer["heapSizes"]) * MIB == 150_000
        assert len(answer["heapSizes"]) == 7 + 3
        assert kinds(profile) == {"several_heaps": 2}
        assert ask(profile, compatible="xprof")["peakHeapMib"] * MIB == 100_000


def test_a_damaged_heap_is_replayed_as_far_as_it_fits(opened):
    """XProf answers nothing."""
    with opened(with_heap([(ALLOC, 1), (FREE, 1), (FREE, 1), (ALLOC, 2)], SIZES)) as profile:
        answer = ask(profile)
        assert [round(size * MIB) for size in answer["heapSizes"]] == [0, 70_000, 0, 0, 30_000]
        assert kinds(profile) == {"hlo_heap": 1}
        with pytest.raises(peakline.errors.InputError, match="XProf does not show this program"):
            ask(profile, compatible="xprof")


def test_temporaries_without_a_heap_count_in_full(opened):
    """XProf leaves them out of the peak."""
    program = with_heap([], SIZES)
    del program.buffer_assignment.heap_simulator_traces[:]
    with opened(program) as profile:
        answer = ask(profile)
        assert answer["peakHeapMib"] * MIB == 120_000
        assert "heapSizes" not in answer
        assert [one["groupName"] for one in answer["maxHeap"]] == ["Temporary"]
        assert answer["indefiniteLifetimes"][0]["attributes"] == ["reusable"]
        assert kinds(profile) == {"no_heap_trace": 1}
        assert "peakHeapMib" not in ask(profile, compatible="xprof")


def test_the_shape_of_a_value_in_a_nested_tuple(opened):
    """XProf takes the last step of the path as one from the whole."""
    program = with_heap(PLAIN, SIZES)
    shape = program.hlo_module.computations[0].instructions[0].shape
    inner = shape.__class__(element_type=TUPLE)
    inner.tuple_shapes.add().CopyFrom(shape)
    inner.tuple_shapes.add(element_type=11, dimensions=[7])
    outer = shape.__class__(element_type=TUPLE)
    outer.tuple_shapes.add().CopyFrom(inner)
    outer.tuple_shapes.add(element_type=4)
    shape.CopyFrom(outer)
    program.buffer_assignment.logical_buffers[0].defined_at.shape_index[:] = [0, 1]
    with opened(program) as profile:
        shown = ask(profile)["maxHeap"][0]
        assert (shown["instructionName"], shown["shapeString"]) == ("i1{0,1}", "f32[7]")
        assert shown["unpaddedShapeMib"] * MIB == 28
        assert ask(profile, compatible="xprof")["maxHeap"][0]["shapeString"] == "s32[]"


def test_programs_are_chosen_by_exact_name_or_id(opened):
    with opened(with_heap(PLAIN, SIZES), "made(28).hlo_proto.pb") as profile:
        for chosen in ({"module_name": "made"}, {"module_name": "made(28)"}, {"program_id": "28"}):
            assert profile.tool("memory_viewer", **chosen).content
        # The only one needs no name.
        assert profile.tool("memory_viewer").content
        for other in ({"module_name": "mad"}, {"program_id": "2"}, {"module_name": "made(2)"}):
            with pytest.raises(NotFoundError, match=r"there is: made\(28\)"):
                profile.tool("memory_viewer", **other)


def test_of_several_programs_it_is_the_one_that_needs_most():
    (path,) = (
        folder for folder in OWN_SAMPLES[0].rglob("vm.xplane.pb.gz") if "jax_cpu" in str(folder)
    )
    with peakline.open(str(path)) as profile:
        needs = json.loads(profile.tool("program_memory").content)["programs"]
        most = max(needs, key=lambda one: one["peak_bytes"])["name"]
        assert len(needs) == 20
        largest = profile.tool("memory_viewer", module_name=most).content
        assert profile.tool("memory_viewer").content == largest
        with pytest.raises(
            UsageError, match=r"2 programs 'jit__normal'; name one: jit__normal\(4\)"
        ):
            profile.tool("memory_viewer", module_name="jit__normal")
        result = profile.tool("memory_viewer", module_name="jit__normal", program_id="12").content
        assert result == profile.tool("memory_viewer", program_id="12").content


def test_memory_spaces(opened):
    with opened(with_heap(PLAIN, SIZES)) as profile:
        assert ask(profile, memory_space="3") == {"moduleName": "made"}
        assert [w.detail for w in profile.warnings] == [
            "nothing of the program lies in memory space 3; there is: 0"
        ]
        assert ask(profile, memory_space="") == ask(profile)
        for text in ("x", "-1", "9" * 30):
            with pytest.raises(UsageError, match="memory_space: a number, not"):
                ask(profile, memory_space=text)


def test_a_program_without_an_assignment(opened):
    program = with_heap(PLAIN, SIZES)
    program.ClearField("buffer_assignment")
    with opened(program) as profile:
        assert ask(profile) == {"moduleName": "made"}
        assert kinds(profile) == {"no_buffer_assignment": 1}


def test_the_peak_as_csv(opened):
    with opened(with_heap(PLAIN, SIZES)) as profile:
        name = profile.programs().label(0)
        content = run_tool(profile, "memory_viewer", {"module_name": name}, "csv").content
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert [(row["instruction"], row["kind"], row["bytes"]) for row in rows] == [
        ("i1", "Temporary", "70000"), ("i2", "Temporary", "30000"),
    ]  # fmt: skip


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text, self._open = [], {}, []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_data(self, data):
        self.text.setdefault(self._open[-1] if self._open else "", []).append(data)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass


def test_the_drawing(opened):
    program = with_heap(PLAIN, SIZES)
    evil = '</pre><script>alert("1")</script>\\"${x}`'
    program.hlo_module.computations[0].instructions[0].name = evil
    with opened(program) as profile:
        given = {"module_name": profile.programs().label(0), "view_memory_allocation_timeline": "1"}
        result = run_tool(profile, "memory_viewer", given)
        dot = run_tool(profile, "memory_viewer", given, "dot").content.decode()
    assert result.format == "html"
    page = _Page()
    page.feed(result.content.decode())
    names = [tag for tag, _ in page.tags]
    assert "script" not in names
    # The allocation and its three values, for those who look and in words.
    assert names.count("rect") == dot.count("tooltip=") == 4
    assert any(evil in "".join(text) for text in page.text["title"])
    assert "".join(page.text["pre"]) == dot
    escaped = evil.replace("\\", "\\\\").replace('"', '\\"')
    assert f"hlo_op:{escaped}\n" in dot


def test_a_drawing_of_nothing_says_so(opened):
    program = with_heap([], SIZES)
    with opened(program) as profile:
        given = {"module_name": profile.programs().label(0), "view_memory_allocation_timeline": "1"}
        assert (
            b"No memory of temporaries over time"
            in run_tool(profile, "memory_viewer", given).content
        )
        assert run_tool(profile, "memory_viewer", given, "dot").content == b""


DATA = Path(__file__).parents[1] / "data"
DUMPS = sorted([*DATA.glob("hlo/*.cpu_after*.hlo.pb"), *DATA.glob("xla_live_range/*.hlo.pb"),
                *DATA.glob("xla_dump/*.cpu_after*.hlo.pb")])  # fmt: skip


def ask_of_program_memory(path, **parameters):
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
    result: Counter[str] = Counter()
    inside = {buffers[event.buffer_id]["allocation"] for event in trace.events}
    root: dict[int, int] = {}
    for event in trace.events:
        if event.kind == 2:
            other = event.share_with_canonical_id
            root[event.buffer_id] = root.get(other, other)
    for number in heap.at_peak:
        held = size[root.get(number, number)]
        result[opcodes[buffers[number]["instruction_id"]]] += held
    largest: dict[int, dict] = {}
    for row in sorted(program.tables["hlo_buffers"], key=lambda row: row["bytes"]):
        if row["allocation"] not in inside and row["kind"] != "thread-local":
            largest[row["allocation"]] = row
    return result, sum(row["allocation_bytes"] for row in largest.values()), max(heap.live)


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.name)
@pytest.mark.parametrize("by", ["opcode", "scope", "source"])
def test_layers_add_up_to_what_is_live_at_every_place(path, by):
    answer = ask_of_program_memory(path, by=by, width=50)
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
    answer = ask_of_program_memory(path)
    assert answer["peak_bytes"] == lasting + most
    own: Counter[str] = Counter()
    for row in answer["rows"]:
        if row["kind"] == "temporary" and row["opcode"]:
            own[row["opcode"]] += row["bytes"]
    for opcode, size in temporary.items():
        assert own[opcode] >= size


def test_rows_name_nodes_of_the_graph():
    path = DATA / "xla_live_range"
    answer = ask_of_program_memory(path)
    with peakline.open(path) as profile:
        for row in answer["rows"][:5]:
            if row["item"] is None:
                continue
            result = json.loads(
                profile.tool(
                    "graph_scopes", view="item", graph=answer["program"], item=row["item"]
                ).content
            )
            assert result["name"].rpartition("/")[2] == row["instruction"]


def test_a_program_that_is_not_there_is_an_error():
    with pytest.raises(NotFoundError, match="no program 'x'"):
        ask_of_program_memory(DATA / "xla_live_range", program="x")


def test_a_profile_without_programs_has_none():
    answer = ask_of_program_memory(DATA / "memory_log" / "session_default_allocator.log.gz")
    assert answer["programs"] == []
    assert answer["program"] is None


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
