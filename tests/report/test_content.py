"""What a report says about profiles whose truth is known."""

import pytest
from tests.each_row import each_row
from tests.memory.hlo_programs import OUTPUT, TEMPORARY, dump, program, value
from tests.memory.records import alloc, events, free
from tests.report.document import report_of
from tests.tables.fake import FakeReader

import peakline
from peakline.api import Profile
from peakline.document import limits, memory_document
from peakline.formats.common.with_programs import with_programs
from peakline.formats.hlo_dump.reader import DumpReader
from peakline.render.html.context import Drawings
from peakline.tables.derived import DERIVED

LEAK = "programs/leak_list.xplane.pb.gz"
HEALTHY = "programs/leak_list_healthy.xplane.pb.gz"


@each_row("name", [LEAK, HEALTHY, "sessions/tf2_cnn", "run_metadata/tf1_grpc.pb.gz"])
def test_the_numbers_are_those_of_the_json(read, name):
    page, profile = read(name)
    document = memory_document(profile)
    exact = {int(attrs["value"]) for attrs, _ in page.all("data", **{"class": None})}
    for allocator in document["allocators"]:
        assert allocator["peak_bytes"] in exact
        if len(document["allocators"]) == 1:
            assert allocator["live_at_end_bytes"] in exact
            assert f"{allocator['peak_bytes']:,} bytes" in page.text
            assert f"{allocator['allocations']:,} allocations" in page.text
            sizes = {}
            for row in allocator["peak_buffers"]:
                sizes[row["op"]] = sizes.get(row["op"], 0) + row["bytes"]
            sizes = {op: result for op, result in sizes.items() if op and op[0] != "("}
            op = max(sizes, key=sizes.get)
            tiles = page.texts("dd")
            assert tiles[tiles.index(op) - 1] == f"{sizes[op] / allocator['peak_bytes']:.1%}"
    for finding in document["findings"]:
        assert finding["title"].partition(": ")[2] in page.text
        assert finding["suggestion"] in page.text
        for row in finding["evidence"].get("rows", ()):
            assert row["bytes_per_step"] in exact


def test_a_leak_is_told_first_with_its_evidence(read):
    page, _ = read(LEAK)
    assert [title for level, title in page.headings if level == 2] == [
        "Summary", "Findings", "Memory", "Time", "Steps", "How these numbers were made",
    ]  # fmt: skip
    assert page.texts("p", **{"class": "verdict warning"}) == ["Memory grows with every step."]
    (heading,) = page.texts("article")
    assert heading.startswith("Warning 768.0 KiB more stay in memory with every step since step")
    rows = page.table("The buffers behind it")
    assert rows[0][:4] == ["Op", "Region", "Type", "Shape"]
    assert rows[1][0] == "model/hidden/MatMul"
    assert rows[1][rows[0].index("Per step")] == "768.0 KiB"
    assert page.table("What grew, by op")[1][0] == "model/hidden/MatMul"
    assert [label.partition(".")[0] for label in page.drawings] == [
        "Memory in use over time",
        "Composition of the peak by scope",
        "Lifetimes of the largest buffers",
        "Memory left at the end of each step",
        "Ops of the host by self time",
        "What the time of a step went to",
    ]


def test_a_step_with_a_random_number_is_told_by_its_place(read):
    page, _ = read("memory_log/eager_default_allocator.log.gz")
    rows = page.table("The buffers behind it")
    assert rows[1][rows[0].index("Since step")] == "run 1"
    assert "-6327657610455609246" not in page.text


def test_a_healthy_profile_is_told_so_and_briefly(read):
    page, _ = read(HEALTHY)
    assert page.texts("p", **{"class": "verdict fine"}) == ["Nothing stands out."]
    assert "Looked for, and not found: memory that grows (20 steps)" in page.text
    assert "Could not be looked for" not in page.text
    assert page.all("article") == []
    assert "Findings" not in [title for _, title in page.headings]
    assert page.table("What grew") == []
    assert len(page.drawings) == 5


def test_the_composition_adds_up_to_the_peak(made):
    rows = [alloc(n, 1000 + n, op=f"model/layer{n % 3}/op{n}", shape="[2,3]") for n in range(30)]
    page = made(rows)
    table = page.table("By op")
    assert len(table) == 1 + 20 + 1 + 1
    assert table[1][0] == "model/layer2/op29"
    assert table[-2][0] == "10 more rows"
    assert table[-1][0] == "All of it"
    assert table[-1][2:] == ["100.0%", "30", ""]
    assert table[1][-1] == "[2, 3]"
    sizes = [
        int(attrs["value"]) for attrs, _ in page.all("data") if attrs["title"].endswith("bytes")
    ]
    assert sum(1000 + n for n in range(30)) in sizes
    scopes = page.table("By scope")
    assert [row[0] for row in scopes[1:]] == [
        "model",
        "model/layer2",
        "model/layer1",
        "model/layer0",
    ]
    assert [row[3] for row in scopes[1:]] == ["30", "10", "10", "10"]


def test_memory_by_step_has_the_most_and_what_is_left(made):
    rows = []
    for step in range(20):
        at = 100 * step
        rows += [
            alloc(step, 1024, op="kept", time_ps=at + 10),
            alloc(999, 4096 if step != 7 else 9999, op="brief", time_ps=at + 20),
            free(999, time_ps=at + 30),
        ]
    steps = [
        {"step_id": n, "name": f"train {n}", "start_ps": 100 * n, "end_ps": 100 * n + 90}
        for n in range(20)
    ]
    page = made(rows, steps)
    table = page.table("Memory in use by step")
    assert len(table) <= 1 + 12
    assert table[1] == ["train 0", "5.0 KiB", "1.0 KiB"]
    assert ["train 7", "17.8 KiB", "8.0 KiB"] in table
    assert table[-1] == ["train 19", "24.0 KiB", "20.0 KiB"]
    assert "the one with the most among them" in page.text


def test_the_course_begins_when_all_from_before_the_profile_is_there(made):
    rows = [alloc(n, 1000, op="old", is_before=True, time_ps=0) for n in range(5)]
    rows += [alloc(9, 3000, op="new", time_ps=10), free(0, time_ps=20), free(9, time_ps=30)]
    page = made(rows)
    assert "From 4.9 KiB at 0 ns to 3.9 KiB at 0.03 ns; the most is 7.8 KiB" in page.text
    table = page.table("Memory in use by time")
    assert len(table) == 1 + 12
    assert table[1][2:] == ["4.9 KiB", "4.9 KiB"]
    assert min(float(row[3].split()[0]) for row in table[1:]) == 3.9


def test_steps_that_read_the_same_are_one_row(made):
    rows = [alloc(1, 4096, time_ps=10), alloc(2, 1024, time_ps=210), free(2, time_ps=220)]
    rows += [alloc(3, 1024, time_ps=1510), free(3, time_ps=1920)]
    steps = [
        {"step_id": n, "name": f"train {n}", "start_ps": 100 * n, "end_ps": 100 * n + 90}
        for n in range(20)
    ]
    page = made(rows, steps)
    assert page.table("Memory in use by step")[1:] == [
        ["train 0 to train 1", "4.0 KiB", "4.0 KiB"],
        ["train 2", "5.0 KiB", "4.0 KiB"],
        ["train 3 to train 14", "4.0 KiB", "4.0 KiB"],
        ["train 15 to train 18", "5.0 KiB", "5.0 KiB"],
        ["train 19", "5.0 KiB", "4.0 KiB"],
    ]
    assert "the profile's 20 steps; those in a row with the same values" in page.text


def near_twice(size, first, second):
    rows = []
    for n, op in enumerate((first, second)):
        more = {"op": op, "shape": f"[{n}]"}
        rows += [alloc(n, size - n, **more), free(n)]
    return rows


def test_mixes_are_told_apart_by_what_is_shown(made):
    page = made(near_twice(2 << 20, "a", "b"))
    assert "2 times, made of 2 different mixes" in page.text
    assert "100% of it from a" in page.text
    assert "100% of it from b" in page.text
    page = made(near_twice(2 << 20, "a", "a"))
    assert "2 times, each time with 100% of it from a." in page.text
    page = made(near_twice(2 << 20, "", ""))
    assert "within 5% of the peak 2 times." in page.text
    assert "within 5% of the peak" not in made(near_twice(256, "a", "b")).text
    rows = [*near_twice(2 << 20, "a", "b"), alloc(7, 300 << 20, allocator="large")]
    assert "within 5% of the peak" not in made(rows).text


def test_memory_that_no_op_made_is_not_the_largest_op(made):
    rows = [alloc(1, 9000, op="(before profile)", is_before=True), alloc(2, 1000, op="a")]
    tiles = made(rows).texts("dd")
    assert tiles[tiles.index("a") - 1] == "10.0%"
    assert "(before profile)" not in tiles
    rows = [alloc(1, 9000, op="(before profile)", is_before=True), alloc(2, 1000, op="")]
    assert "Of its largest op" not in made(rows).text


def test_a_share_of_all_rows_is_not_told(made):
    few = made([alloc(n, 1000 * n, op=f"op{n}") for n in range(1, 4)])
    assert "3 buffers of 3 ops." in few.text
    many = made([alloc(n, 1000 * n, op=f"op{n}") for n in range(1, 5)])
    assert "4 buffers of 4 ops; the largest 3 rows of the table have 90.0%" in many.text


def test_allocators_with_the_same_figures_are_told_once(made):
    rows = [alloc(1, 5000, op="a", allocator=f"chip{n}") for n in range(3)]
    rows.append(alloc(1, 6000, op="a", allocator="host"))
    page = made(rows)
    titles = [title for level, title in page.headings if level == 2]
    assert titles[1:3] == ["Allocator host", "Allocators chip0, chip1, chip2"]
    assert "times and usage are those of chip0" in page.text
    assert len(page.table("Allocators")) == 1 + 4
    assert [attrs["href"] for attrs, _ in page.all("a")].count("#allocator-2") == 4
    assert "have no section here" not in page.text


def test_pieces_cost_memory_of_the_pool_and_not_of_the_peak(read):
    page, _ = read("programs/fragmentation.xplane.pb.gz")
    assert "Less fragmentation would let the allocator's pool be up to" in page.text
    ways = page.table("What would lower the peak")
    assert len(ways) > 1
    assert not any("fragmentation" in cell for row in ways for cell in row)
    facts = page.table("The numbers behind it")
    assert [row[1] for row in facts if row[0] == "Most in use at known addresses"] == ["30.3 MiB"]
    assert "Peak" not in [row[0] for row in facts]


def test_steps_and_repetitions_are_the_same_number(made):
    rows = []
    for _ in range(12):
        for number, op in enumerate("abc"):
            rows += [alloc(number, 4096, op=op, shape="[1]"), free(number)]
    text = made(rows).text
    assert "first of 11 steps" in text
    assert "Steps are 11 repetitions of about 3 allocations" in text


def test_the_largest_buffers_say_when_they_lived(made):
    rows = [
        alloc(1, 5000, op="a", data_type="float", shape="[5]", time_ps=10**9),
        alloc(2, 7000, op="b", time_ps=2 * 10**9),
        free(1, time_ps=4 * 10**9),
    ]
    table = made(rows).table("The 2 largest of 2 buffers")
    assert table[1] == ["b", "6.8 KiB", "", "2.000 ms", "not in the profile", ""]
    assert table[2] == ["a", "4.9 KiB", "float [5]", "1.000 ms", "4.000 ms", "3.000 ms"]


def test_several_allocators_stand_in_order_of_their_findings_then_size(made):
    rows = [alloc(1, 10**6, allocator="large"), alloc(2, 10, allocator="small")]
    rows.append(alloc(3, 95, allocator="full", in_use_bytes=95, free_bytes=5))
    page = made(rows)
    assert [title for level, title in page.headings if level == 2] == [
        "Summary", "Findings", "Allocator full", "Allocator large", "Allocator small",
        "How these numbers were made",
    ]  # fmt: skip
    assert [row[0] for row in page.table("Allocators")[1:]] == ["full", "large", "small"]
    assert "Allocator full" in page.texts("article")[0]
    only = made(rows, allocator="small")
    assert [title for level, title in only.headings if level == 2][1] == "Memory"
    assert "Allocator small" in only.texts("p", **{"class": "of"})


def test_more_allocators_than_sections_are_counted(made, monkeypatch):
    monkeypatch.setattr(limits, "ALLOCATORS", limits.Most(report=2))
    page = made([alloc(n, 100 * n, allocator=f"a{n}") for n in range(1, 6)])
    assert [title for level, title in page.headings if title.startswith("Allocator")] == [
        "Allocator a5",
        "Allocator a4",
    ]
    assert "3 more allocators" in page.text
    assert len(page.table("Allocators")) == 1 + 5


def test_a_profile_of_one_moment_does_not_speak_of_time(read):
    page, _ = read("pprof/device_memory.pprof.pb.gz")
    assert "at one moment" in page.text
    titles = {title for _, title in page.headings}
    assert "What is in memory" in titles
    assert not titles & {"Memory over time", "What would need less memory", "Fragmentation"}


def test_an_allocation_that_failed_is_explained(read):
    page, _ = read("oom_report/tf_bfc_oom.log.gz")
    assert page.texts("p", **{"class": "verdict error"}) == ["Memory ran out."]
    facts = dict(page.table("The numbers behind it")[1:])
    assert facts["Cause"] == "not enough was free"
    assert facts["Requested"] == "2.0 MiB"
    assert page.table("Pieces in use, by size")[1] == ["2.0 MiB", "31", "62.0 MiB"]


def test_a_profile_without_memory_says_so_and_what_it_has(read):
    page, _ = read("sessions/jax_cpu")
    assert (
        "There are no records of memory in this profile; its compiled programs say what they need."
    ) in page.text
    titles = [title for level, title in page.headings if level == 2]
    assert titles[1:5] == ["Time", "Steps", "Compiled programs", "Graphs"]


def test_what_was_lost_and_could_not_be_known_is_told(made):
    rows = [alloc(None, 5, op="x"), alloc(1, 5), free(77)]
    page = made(rows, losses={"allocator_events": ("truncated", "half an event", 3)})
    assert ["truncated", "3", "half an event"] in page.table("Lost, skipped or guessed")
    result = page.texts("li")
    assert "How much it may take at most: no record reports what is free." in result
    assert any("1 record without an id" in one for one in result)
    assert any("1 deallocation freed: no allocation" in one for one in result)


def test_records_without_ids_have_a_peak_that_is_not_known(made):
    assert "its records have no ids" in made([alloc(None, 5), alloc(None, 6)]).text


def test_title_and_command_are_told(made):
    page = made([alloc(1, 5)], title="Run <7>", command="peakline report x -o y")
    assert page.texts("h1") == ["Run <7>"]
    assert page.texts("title") == ["Profile report: Run <7>"]
    assert (
        dict(page.table("Where the numbers come from")[1:])["Command"] == "peakline report x -o y"
    )


def test_a_figure_too_large_for_the_page_leaves_its_table(made, monkeypatch):
    monkeypatch.setattr("peakline.render.html.context.MOST_BYTES", 100)
    page = made([alloc(n, 10, op=f"a{n}/b") for n in range(5)])
    assert page.drawings == []
    assert page.table("Memory in use by time")
    assert "would have made this file too large" in page.text
    assert Drawings().left_out == 0


HOSTILE = [
    "</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "<!--<script>",
    "]]>&lt;b&gt;", "a\x00\x1b[31m\u202e\u2028b", "'`${x}`/../../etc",
    '<a href="javascript:alert(1)">x</a>',
]  # fmt: skip


@each_row("name", HOSTILE)
def test_no_name_of_a_profile_becomes_markup(made, name):
    rows = []
    for step in range(8):
        rows += [
            alloc(
                step,
                10**6,
                op=name, region_type=name, data_type=name, shape=name, allocator=name,
                in_use_bytes=10**6 * (step + 1),
                free_bytes=10,
                time_ps=step * 100,
            )
        ]  # fmt: skip
    steps = [
        {"step_id": n, "name": f"{name}{n}", "start_ps": 100 * n, "end_ps": 100 * n + 90}
        for n in range(8)
    ]
    page = made(rows, steps, title=name, command=name, losses={"allocator_events": (name, name, 1)})
    plain = made([row | {"op": "op"} for row in rows[:1]])
    assert {tag for tag, _, _ in page.elements} - {tag for tag, _, _ in plain.elements} <= {
        "a", "article", "br", "g", "text", "title", "strong", "nav", "li", "ul", "details",
        "summary", "figure", "figcaption", "div", "circle", "wbr",
    }  # fmt: skip
    assert page.all("script") == []
    assert page.all("img") == []
    assert all(attrs["href"].startswith("#") for attrs, _ in page.all("a"))
    assert not any(char in page.source for char in "\x00\x1b\u202e")


def test_a_very_long_name_is_shortened(made):
    assert len(made([alloc(n, 10, op="x" * 100_000) for n in range(3)]).source) < 200_000


def test_an_optimizer_without_memory_has_no_state_twice(made):
    page = made([alloc(1, 0, op="optimizer/ResourceApplyAdam", in_use_bytes=0)])
    assert page.all("article") == []


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


def test_what_a_profiler_printed_is_first_and_whole(read):
    page, _ = read("op_table/torch_cuda.txt")
    assert "75% of the cuda self time that torch.profiler printed is aten::addmm" in page.text
    assert "ampere_sgemm_128" in page.text
    assert "a printed table has neither events nor steps" in page.text
