"""What a report says of compiled programs."""

import pytest
from tests.analysis.hlo_programs import OUTPUT, TEMPORARY, dump, program, value
from tests.analysis.records import alloc, events
from tests.profile.fake import FakeReader
from tests.report.document import report_of

import peakline
from peakline.api import Profile
from peakline.formats.common.with_programs import with_programs
from peakline.formats.hlo_dump.reader import DumpReader
from peakline.tables.derived import DERIVED

MIB = 2**20
OOM = "E0528 x.cc:1] RESOURCE_EXHAUSTED: Out of memory while trying to allocate {} bytes.\n"


@pytest.fixture
def dumped(tmp_path):
    many = [value(OUTPUT, f"result {n}", (n, 512), line=n) for n in range(1, 40)]
    return dump(
        tmp_path / "dump",
        program("jit_train", value(TEMPORARY, "jit(<b>)/sort", (1024, 256), line=20), number=1),
        program("jit_many", *many, number=2),
    )


def test_a_profile_without_records_says_what_its_programs_need(read):
    page, profile = read("sessions/jax_cpu")
    titles = [title for level, title in page.headings if level == 2]
    assert titles == [
        "Summary", "Time", "Steps", "Compiled programs", "Graphs",
        "How these numbers were made",
    ]  # fmt: skip
    assert "A device holds at least this while they run" in page.text
    assert page.table("What CPU:0 needs")[1:] == [
        ["At least", "2.5 MiB (2,629,716 bytes)"],
        ["Program", "jit_train_step(28), by the heap that XLA simulated"],
        ["Ran", "10 runs, the first at 0.780 ms"],
    ]
    rows = page.table("Live then")
    assert rows[0] == ["Size", "Share", "Kind", "Shape", "Op", "Line", "Instruction"]
    assert rows[1][3:6] == ["f32[256,256]", "jit(train_step)/sub", "gen_f_jax.py:14"]
    assert page.table("Live at the peak, by line")[1][3] == "gen_f_jax.py:14"
    assert report_of(profile).text == page.text


def test_a_dump_is_cut_to_its_largest_values(dumped):
    with peakline.open(dumped) as profile:
        page = report_of(profile)
    assert "Nothing here says which of them ran." in page.text
    assert len(page.table("Live then")) == 31
    # 45 of 780 rows of 512 floats: those of 1 to 9.
    assert "And 9 more values, 90.0 KiB." in page.text


def test_a_failed_allocation_is_explained(tmp_path, dumped):
    path = tmp_path / "oom.txt"
    path.write_text(OOM.format(MIB))
    with peakline.open(path, programs=dumped) as profile:
        page = report_of(profile)
    titles = [title for level, title in page.headings if level == 2]
    assert titles[:3] == ["Summary", "Findings", "What the failed allocations were for"]
    assert "jit_train(1) has an allocation of exactly 1.0 MiB (1,048,576 bytes)" in page.text
    rows = page.table("When jit_train(1) needs most, 1.0 MiB, it has live")
    assert rows[1][4:6] == ["jit(<b>)/sort", "model.py:20"]
    assert not page.all("b")
    with peakline.open(path) as profile:
        assert "What the failed allocations were for" not in report_of(profile).text


@pytest.fixture
def at_peak(dumped):
    """The report of a device whose allocator peaks at 5 ps, and which ran a program then."""

    def make(start, size):
        reader = FakeReader(
            {
                "allocator_events": events([alloc(5, size, op="copy", allocator="TPU:0")]),
                "planes": [{"plane_id": 0, "name": "/device:TPU:0", "kind": "device"}],
                "lines": [{"line_id": 0, "plane_id": 0, "name": "XLA Modules"}],
                "events": [
                    {"event_id": 0, "line_id": 0, "name": "jit_train(1)", "start_ps": start,
                     "duration_ps": 10}
                ],
            }
        )  # fmt: skip
        with Profile(with_programs(reader, DumpReader(str(dumped))), derived=DERIVED) as profile:
            return report_of(profile)

    return make


def test_the_program_that_ran_at_the_peak_is_shown(at_peak):
    page = at_peak(0, 4 * MIB)
    assert "The program at the peak" in [title for _, title in page.headings]
    assert "jit_train(1) ran at the peak; when it needs most, 1.0 MiB, it has live:" in page.text
    assert page.table("Live when the program needs most")[1][0] == "1.0 MiB"
    # Later, or too small to explain anything.
    assert "ran at the peak" not in at_peak(6, 4 * MIB).text
    assert "ran at the peak" not in at_peak(0, 400 * MIB).text
