"""Programs of many computations: of their messages only some are there at a time."""

import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder
from tests.sweeps import sweep

from peakline.hlo import messages
from peakline.hlo.messages import ModuleParts, read_module
from peakline.hlo.printing import LONG, PrintOptions, module_text, proto_text
from peakline.schema import HloProto, ShapeProto

DUMPS = Path(__file__).parent.parent / "data/hlo"
PROGRAM = DUMPS / "module_0012.jit_chunk_attention.cpu_after_optimizations.hlo.pb"
SIZE = 5 << 20
MOST = 8 * SIZE
"""Above the answer, what a text may take: a program all of whose messages are there takes 19."""

ANSWER = """
import re, sys
from pathlib import Path
import peakline
words = dict(word.split("=") for word in sys.argv[3:])
with peakline.open(sys.argv[1]) as profile:
    answer = profile.tool(sys.argv[2], **words)
most = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
print(len(answer.content), most)
"""


def repeated(size):
    """A real program with its largest computation again and again, up to so many bytes."""
    made = HloProto.FromString(PROGRAM.read_bytes())
    one = max(made.hlo_module.computations, key=lambda one: len(one.instructions))
    again = type(one).FromString(one.SerializeToString())
    for number in range(size // again.ByteSize()):
        again.id, again.name = 10_000 + number, f"again.{number}"
        made.hlo_module.computations.append(again)
    return made.SerializeToString()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.hlo.pb"
    path.write_bytes(repeated(SIZE))
    return path


def run(path, tool, *words):
    """Bytes of an answer, and the most memory of the process that made it."""
    command = [sys.executable, "-c", ANSWER, path, tool, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    size, peak = map(int, done.stdout.split())
    return size, peak << 10


@pytest.mark.skipif(sys.platform != "linux", reason="no measure of a process's memory")
@pytest.mark.parametrize("kind", sweep(["short_txt", "long_txt", "pbtxt"], "short_txt".__eq__))
def test_a_text_needs_little_more_than_program_and_answer(large, kind):
    few, least = run(PROGRAM, "graph_viewer", f"type={kind}")
    size, most = run(large, "graph_viewer", f"type={kind}")
    assert size > 10 * few
    assert most - least - size < MOST


def ran(path, data):
    """A profile of a GPU that ran a fusion of a program a few times."""
    space = SpaceBuilder()
    plane = space.plane("/host:metadata")
    plane.add_stats(plane.message.event_metadata[plane.event_id("jit_f(7)")], {"Hlo Proto": data})
    line = space.plane("/device:GPU:0").line("Stream")
    computations = HloProto.FromString(data).hlo_module.computations
    names = (made.name for one in computations[-8:] for made in one.instructions)
    for number, name in enumerate(islice(dict.fromkeys(names), 20)):
        line.event("kernel", number * 1000, 500, {"hlo_op": name, "program_id": 7})
    path.write_bytes(space.space.SerializeToString())
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="no measure of a process's memory")
@pytest.mark.parametrize("tool", sweep(["hlo_stats", "op_profile"], "hlo_stats".__eq__))
def test_ops_that_ran_need_little_of_their_program(tmp_path, large, tool):
    _, least = run(ran(tmp_path / "small.xplane.pb", PROGRAM.read_bytes()), tool)
    size, most = run(ran(tmp_path / "large.xplane.pb", large.read_bytes()), tool)
    assert size > 1000
    assert most - least < 10 * SIZE


@pytest.fixture
def in_parts(monkeypatch):
    """Reads small programs as it does large ones."""
    monkeypatch.setattr(messages, "LARGE", 0)
    monkeypatch.setattr(proto_text, "LARGE", 0)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("path", sorted(DUMPS.glob("*.hlo.pb")), ids=lambda path: path.name[:30])
def test_the_texts_are_those_of_the_whole_message(path):
    data = path.read_bytes()
    whole, parts = HloProto.FromString(data), read_module(data)
    assert parts.head != whole.hlo_module
    assert "".join(proto_text.stored_text(data, "xla.HloProto")) == "".join(
        proto_text.proto_text(whole)
    )
    for options in (LONG, PrintOptions(metadata=True)):
        shown = [
            "".join(module_text(p, options)) for p in (parts, ModuleParts.of(whole.hlo_module))
        ]
        assert shown[0] == shown[1]
    assert parts.whole() == whole.hlo_module


@pytest.mark.usefixtures("in_parts")
@each_row(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"\x0b",
        lambda data: data.replace(b"parameter", b"param\xffter", 1),
        lambda _: b"\x0a\x80",
    ],
)
def test_damage_is_noticed_before_anything_is_shown(damage):
    assert read_module(damage(PROGRAM.read_bytes())) is None


@each_row("place", [0, 1_000_000])
def test_a_field_that_is_no_such_thing_is_found_among_many_small_ones(place):
    shape = ShapeProto(tuple_shapes=[ShapeProto(element_type=11)] * 300_000)
    module = HloProto()
    module.hlo_module.host_program_shape.result.CopyFrom(shape)
    whole = bytearray(module.SerializeToString())
    assert len(whole) > messages.LARGE
    assert read_module(bytes(whole)) is not None
    place = whole.index(b"\x22\x02\x10\x0b", place)
    whole[place + 2] = 0x0C  # the end of a group that none began
    assert read_module(bytes(whole)) is None
