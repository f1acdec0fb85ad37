"""When values are live, by the text that XLA dumps beside the text of a buffer assignment."""

import re
import shutil

import pytest
from tests.each_row import each_row

import peakline
from peakline.formats.hlo_text.program import translate_assignment
from peakline.schema import BufferAssignmentProto

LIVE = "-live-range.txt"


@pytest.fixture
def dumped(root, tmp_path):
    """A copy of the dump of a program, without the files with these ends."""

    def make(*without):
        folder = tmp_path / "dump"
        shutil.rmtree(folder, ignore_errors=True)
        ends = shutil.ignore_patterns(*(f"*{end}" for end in without))
        return shutil.copytree(root / "tests" / "data" / "xla_live_range", folder, ignore=ends)

    return make


def answer(path):
    with peakline.open(path) as profile:
        (module,) = profile.sql(
            "select name, peak_bytes, peak_found_by from hlo_modules"
        ).to_pylist()
        rows = profile.sql(
            'select i.name, b.shape_index, b.bytes, b.kind, b.start, b."end", b.is_live_at_peak '
            "from hlo_buffers b join hlo_instructions i using (instruction_id) "
            "order by 1, 2"
        ).to_pylist()
        assert not profile.warnings
    return module, rows


def check_lives(path, rows):
    """The temporaries among these rows live as long as XLA says; how many they are."""
    # XLA numbers the instructions as the tables do.
    (text,) = path.glob(f"*{LIVE}")
    said = {
        (name, index.replace("{}", "")): (int(start), int(end))
        for name, index, start, end in re.findall(
            r"^    (\S+?)(\{[\d,]*\}):(\d+)-(\d+)$", text.read_text(), re.MULTILINE
        )
    }
    temporary = [row for row in rows if row["kind"] == "temporary"]
    for row in temporary:
        assert (row["start"], row["end"]) == said[row["name"], row["shape_index"]], row
    return len(temporary)


def test_texts_say_what_the_message_says(dumped):
    module, rows = answer(dumped())
    assert (module["peak_bytes"], module["peak_found_by"]) == (163944, "heap trace")
    path = dumped(".hlo.pb")
    again, found = answer(path)
    check_lives(path, found)
    # Ends in a heap trace have the names of the makers, in the texts those of the last users.
    assert check_lives(path, [row for row in rows if row["end"] not in (None, 33)]) > 15
    assert again == module
    at_peak = [row["name"] for row in rows if row["is_live_at_peak"]]
    assert [row["name"] for row in found if row["is_live_at_peak"]] == at_peak
    assert len(found) == len(rows)


def test_without_the_ranges_the_peak_is_an_upper_bound(dumped):
    module, _ = answer(dumped(".hlo.pb", LIVE))
    assert module["peak_found_by"] == "allocations"
    assert module["peak_bytes"] > 163944


def test_what_adds_nothing_is_passed_over(dumped):
    folder = dumped()
    for number in ("0006.jit_ranges", "0099.jit_other"):
        stem = folder / f"module_{number}.cpu_after_optimizations"
        for extra in ("-memory-usage-report.pb", "-memory-usage-report.txt", "-odd.txt"):
            stem.with_name(stem.name + extra).write_bytes(b"\n\x03odd\xff")
        stem.with_name(f"module_{number}.debug_options").write_text("odd")
    (folder / f"{stem.name}{LIVE}").write_text("odd")
    assert answer(folder)[0]["name"] == "jit_ranges"


ASSIGNMENT = b"""BufferAssignment:
allocation 0: size 16, preallocated-temp:
 value: <1 a @0> (size=16,offset=0): f32[4]{0}
 value: <2 b @0> (size=8,offset=8): f32[2]{0}
 value: <3 c{1} @0> (size=8,offset=0): f32[2]{0}
allocation 1: size 16, maybe-live-out:
 value: <4 d @0> (size=16,offset=0): f32[4]{0}
"""
ALLOCATION, DEALLOCATION, SHARE = range(3)


def events(ranges):
    text = "HloLiveRange (max 9):\n  InstructionSequence:\n" + "".join(
        f"    {place}:i{place}\n" for place in range(9)
    )
    text += "  BufferLiveRange:\n" + "".join(f"    {one}\n" for one in ranges)
    data, losses = translate_assignment(ASSIGNMENT, None, text.encode())
    assert losses.entries() == []
    return [
        (one.kind, one.buffer_id, one.share_with_canonical_id, one.instruction_name)
        for trace in BufferAssignmentProto.FromString(data).heap_simulator_traces
        for one in trace.events
    ]


@each_row(
    "ranges, expected",
    [
        # One after the other.
        (["a{}:1-2", "b{}:3-4"],
         [(ALLOCATION, 1, 0, "i1"), (DEALLOCATION, 1, 0, "i2"), (ALLOCATION, 2, 0, "i3"),
          (DEALLOCATION, 2, 0, "i4")]),
        # The memory of one is taken over: it ends before the other begins.
        (["a{}:1-3", "b{}:3-4"],
         [(ALLOCATION, 1, 0, "i1"), (DEALLOCATION, 1, 0, "i3"), (ALLOCATION, 2, 0, "i3"),
          (DEALLOCATION, 2, 0, "i4")]),
        # It is shared.
        (["a{}:1-5", "b{}:3-4"],
         [(ALLOCATION, 1, 0, "i1"), (SHARE, 2, 1, "i3"), (DEALLOCATION, 2, 0, "i4"),
          (DEALLOCATION, 1, 0, "i5")]),
        # Beside each other, one of them a part of a tuple.
        (["b{}:1-2", "c{1}:2-2"],
         [(ALLOCATION, 2, 0, "i1"), (ALLOCATION, 3, 0, "i2"), (DEALLOCATION, 2, 0, "i2"),
          (DEALLOCATION, 3, 0, "i2")]),
        # What is held all the time has no heap, what is unknown or damaged no event.
        (["d{}:1-2", "c{}:1-2", "other{}:1-2", "a{}:5-3", "a{}:1-", "a{:1-2", "b{}:1-99999999999"],
         []),
        ([], []),
    ],
)  # fmt: skip
def test_events(ranges, expected):
    assert events(ranges) == expected


def test_values_without_allocations_are_no_assignment(root):
    name = "module_0000.jit_flow.cpu_after_optimizations-buffer-assignment-values.txt"
    with peakline.open(root / "tests" / "data" / "xla_dump" / name) as profile:
        (row,) = profile.table("hlo_modules").to_pylist()
        assert (row["peak_bytes"], row["peak_found_by"]) == (None, None)
