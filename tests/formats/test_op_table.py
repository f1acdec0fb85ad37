"""Tables that profilers print: every line of them is read, whatever they look like in a log."""

from decimal import Decimal
from itertools import pairwise

from tests.each_row import each_row
from tests.shared import DATA

from peakline import open as open_profile
from peakline.document.ops import printed_tables
from peakline.timing.ops.printed import printed_times

TORCH = (DATA / "op_table" / "torch_shapes.txt").read_text()
CUDA = (DATA / "op_table" / "torch_cuda.txt").read_text()
SIMPLE = """
FIT Profiler Report

-----------------------------------------------------------------------------------------
|  Action               |  Mean duration (s) |  Num calls | Total time (s) | Percentage % |
-----------------------------------------------------------------------------------------
|  Total                |  -                 |  2302      |  12.47         |  100 %       |
-----------------------------------------------------------------------------------------
|  run_training_epoch   |  10.11             |  1         |  10.11         |  81.07       |
|  run_training_batch   |  0.0091            |  938       |  8.54          |  68.48       |
-----------------------------------------------------------------------------------------
"""
ADVANCED = """
Profile stats for: run_training_batch rank: 0
         36 function calls (30 primitive calls) in 0.412 seconds

   Ordered by: cumulative time

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
     10/5    0.300    0.030    0.400    0.080 train.py:12(training_step)
       20    0.100    0.005    0.100    0.005 {built-in method torch._C._nn.linear}


Profile stats for: optimizer_step
         3 function calls in 0.050 seconds

   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
        1    0.050    0.050    0.050    0.050 adam.py:9(step)
"""
OLD = """
------------  -----------------  ---------------  -----------  ---------  ------------  ---------------
Name          Self CPU total %   Self CPU total   CPU total %  CPU total  CPU time avg  Number of Calls
------------  -----------------  ---------------  -----------  ---------  ------------  ---------------
mul           60.00%             6.000us          60.00%       6.000us    2.000us       3
add           40.00%             4.000us          40.00%       4.000us    4.000us       1
------------  -----------------  ---------------  -----------  ---------  ------------  ---------------
Self CPU time total: 10.000us
"""  # noqa: E501


def rows_of(tmp_path, text):
    path = tmp_path / "printed.log"
    path.write_text(text)
    profile = open_profile(path)
    assert profile.format == "op_table"
    return profile, profile.table("printed_ops").to_pylist()


def plain_rows(text):
    """The table of torch.profiler by the places of its dashes."""
    lines = text.splitlines()
    rules = [place for place, line in enumerate(lines) if line.startswith("----")]
    edges = [0]
    for place, (left, right) in enumerate(pairwise(lines[rules[0]]), 1):
        if left == "-" and right == " ":
            edges.append(place)
    cells = [
        [line[begin:end].strip() for begin, end in pairwise(edges)]
        for line in (lines[rules[0] + 1], *lines[rules[1] + 1 : rules[2]])
    ]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]


def plain_time(text):
    scale = {"us": 6, "ms": 9}[text[-2:]]
    return int(Decimal(text[:-2]).scaleb(scale))


def test_a_table_of_torch_as_a_plain_reader_reads_it(tmp_path):
    _, rows = rows_of(tmp_path, TORCH)
    expected = plain_rows(TORCH)
    assert len(rows) == len(expected) == 6
    for row, cell in zip(rows, expected, strict=True):
        assert row["op"] == cell["Name"]
        assert row["occurrences"] == int(cell["# of Calls"])
        assert row["self_ps"] == plain_time(cell["Self CPU"])
        assert row["total_ps"] == plain_time(cell["CPU total"])
        assert row["self_bytes"] == int(cell["Self CPU Mem"].removesuffix(" B"))
        assert row["input_shape"] == cell["Input Shapes"]
        flops = cell["Total FLOPs"]
        assert row["flops"] == (None if flops == "--" else float(flops))
        assert row["whole_ps"] == plain_time(TORCH.split()[-1])
        assert row["device"] is None


def changed(line_of):
    return "".join(f"{line_of(line)}\n" for line in TORCH.splitlines())


@each_row(
    "text",
    [
        changed(lambda line: f"[rank0]: {line}"),
        changed(lambda line: f"2024-03-01 12:00:01,120 - {line.rstrip()}"),
        changed(lambda line: " ".join(line.split())),
        f"epoch 1\n{TORCH}\nepoch 2, loss 0.3\n",
        TORCH.replace("\n", "\r\n"),
    ],
)
def test_what_logs_and_pastes_do_to_a_table_changes_nothing(tmp_path, text):
    profile, rows = rows_of(tmp_path, text)
    assert rows == rows_of(tmp_path, TORCH)[1]
    assert profile.table("warnings").num_rows == 0


def test_ops_and_kernels_of_a_device_are_two_tables_and_marks_are_neither(tmp_path):
    mark = next(line for line in CUDA.splitlines() if "ProfilerStep*" in line)
    mark = mark.replace("1.000ms", "0.000us").replace("9.000ms", "0.000us")
    mark = mark.replace("3.000ms", "0.000us").replace(
        "0.000us         0.00%", "9.000ms        45.00%"
    )
    whole = CUDA.replace("ampere_sgemm_128", "ampere_sgemm_128", 1)
    at = whole.index("void at::native")
    profile, _ = rows_of(tmp_path, whole[:at] + mark.lstrip() + "\n" + whole[at:])
    by_side = {one.side: one for one in printed_times(profile)}
    assert {side: (len(one.rows), one.shown_ps, one.whole_ps) for side, one in by_side.items()} == {
        "cuda": (1, 15 * 10**9, 20 * 10**9),
        "cuda kernels": (2, 20 * 10**9, 20 * 10**9),
        "host": (3, 2_100_000_000, 9_990_000_000),
    }


def test_header_words_by_the_thousand_and_blanks_in_rows_take_no_time(tmp_path):
    header = "Name Self CPU % Self CPU CPU total % CPU total CPU time avg # of Calls"
    path = tmp_path / "hostile.log"
    path.write_text(f"{TORCH}\n{header * 9}\n{header}\n" + f"a{' ' * 900_000}1\n" * 15)
    profile = open_profile(path)
    assert profile.table("printed_ops").num_rows == 6
    counts = {row["kind"]: row["count"] for row in profile.table("warnings").to_pylist()}
    assert counts == {"malformed_lines": 15, "truncated": 1}


def test_before_1_7_of_torch(tmp_path):
    _, rows = rows_of(tmp_path, OLD)
    assert [(r["op"], r["occurrences"], r["self_ps"], r["whole_ps"]) for r in rows] == [
        ("mul", 3, 6_000_000, 10_000_000),
        ("add", 1, 4_000_000, 10_000_000),
    ]


def test_profilers_of_lightning(tmp_path):
    profile, rows = rows_of(tmp_path, SIMPLE)
    assert [(row["op"], row["occurrences"], row["total_ps"], row["self_ps"]) for row in rows] == [
        ("run_training_epoch", 1, 10_110 * 10**9, None),
        ("run_training_batch", 938, 8_540 * 10**9, None),
    ]
    (table,) = printed_tables(profile, 20).values()
    # What includes each other has no sum.
    assert "which include each other; 12.470 s in all" in table.title
    assert [tuple(row[:2]) for row in table.rows] == [
        ("81.1%", 10_110 * 10**9),
        ("68.5%", 8_540 * 10**9),
    ]

    _, rows = rows_of(tmp_path, ADVANCED)
    assert [(r["part"], r["op"], r["occurrences"], r["self_ps"], r["whole_ps"]) for r in rows] == [
        ("run_training_batch", "train.py:12(training_step)", 10, 3 * 10**11, 412 * 10**9),
        ("run_training_batch", "{built-in method torch._C._nn.linear}", 20, 10**11, 412 * 10**9),
        ("optimizer_step", "adam.py:9(step)", 1, 5 * 10**10, 5 * 10**10),
    ]


def test_lines_that_do_not_fit_are_counted_and_a_log_behind_is_no_table(tmp_path):
    lines = TORCH.splitlines()
    lines[4] = "aten::broken 1.2ms"
    profile, rows = rows_of(tmp_path, "\n".join(lines))
    assert len(rows) == 5
    (warning,) = profile.table("warnings").to_pylist()
    assert (warning["kind"], warning["count"]) == ("malformed_lines", 1)

    profile, rows = rows_of(tmp_path, "\n".join(lines[:4] + [f"step {n}" for n in range(300)]))
    assert len(rows) == 1
    assert profile.table("warnings").num_rows == 0
