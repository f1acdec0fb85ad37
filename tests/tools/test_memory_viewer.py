"""The ``memory_viewer`` tool: against a plain reader of the messages, and where XProf is wrong."""

import csv
import io
import json
from html.parser import HTMLParser

import pytest
from tests.conformance.oracle import OWN_SAMPLES
from tests.reference.odd_assignments import ALLOC, FREE, SHARE, TUPLE, odd_program, with_heap
from tests.reference.program_memory import MIB, curve_of

import peakline
from peakline.errors import NotFoundError, UsageError
from peakline.hlo.memory import memory_of
from peakline.schema import HloProto
from peakline.tools import available_tools, run_tool

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
def test_odd_programs_are_as_the_plain_reader_says(opened, damage):
    curves = strange = 0
    for seed in range(60):
        program = odd_program(seed, damage=damage)
        for space in (0, 1, 5):
            with opened(program) as profile:
                wanted = curve_of(program, space)
                check(ask(profile, memory_space=str(space)), wanted)
                assert kinds(profile).get("hlo_heap", 0) == wanted["strange"]
                curves += bool(wanted["points"])
                strange += wanted["strange"]
    assert curves > 60
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


def test_of_several_programs_one_has_to_be_named():
    (path,) = (
        folder for folder in OWN_SAMPLES[0].rglob("vm.xplane.pb.gz") if "jax_cpu" in str(folder)
    )
    with peakline.open(str(path)) as profile:
        with pytest.raises(UsageError, match=r"20 programs; say module_name: .* and 10 more"):
            profile.tool("memory_viewer")
        with pytest.raises(
            UsageError, match=r"2 programs 'jit__normal'; name one: jit__normal\(4\)"
        ):
            profile.tool("memory_viewer", module_name="jit__normal")
        found = profile.tool("memory_viewer", module_name="jit__normal", program_id="12").content
        assert found == profile.tool("memory_viewer", program_id="12").content


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
        found = run_tool(profile, "memory_viewer", given)
        dot = run_tool(profile, "memory_viewer", given, "dot").content.decode()
    assert found.format == "html"
    page = _Page()
    page.feed(found.content.decode())
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
