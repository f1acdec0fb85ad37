"""``peakline ops`` on tables made by hand."""

import json

import pytest
from tests.cli.made import MS, made
from tests.each_row import each_row
from tests.shared import DATA


def op(name, side, own, total=None, runs=1, kind="MatMul"):
    return {
        "side": side, "op": name, "op_type": kind, "occurrences": runs,
        "total_ps": (total or own) * MS, "self_ps": own * MS, "min_ps": MS, "median_ps": own * MS,
        "p95_ps": own * MS, "max_ps": own * MS,
    }  # fmt: skip


OPS = [
    op("a", "host", 10, total=90),
    op("b", "host", 30, runs=1200),
    op("dense/MatMul", "device", 60),
    op("Relu", "device", 20, kind="Relu"),
]
KERNEL = {
    "kernel": "gemm", "op": "dense/MatMul", "grid": "128,1,1", "block": "256,1,1",
    "registers_per_thread": 32, "static_shared_bytes": 0, "dynamic_shared_bytes": 0,
    "occupancy_percent": 50.0, "uses_tensor_cores": False, "could_use_tensor_cores": True,
    "occurrences": 4, "total_ps": 8 * MS, "min_ps": MS, "median_ps": 2 * MS, "p95_ps": 3 * MS,
    "max_ps": 3 * MS,
}  # fmt: skip


@pytest.fixture(name="path")
def _path(monkeypatch, tmp_path):
    return made(monkeypatch, tmp_path, op_stats=OPS, kernels=[KERNEL])


def test_the_screen(peakline, path):
    run = peakline("ops", path)
    assert (run.code, run.err) == (0, "")
    assert (
        run.out
        == f"""\
75.0% of the device's self time: dense/MatMul
{path} (fake, host worker-0, 1.234 ns)

device: 2 ops, 80.000 ms of self time, summed over devices and their streams
  SELF TIME  SHARE      TOTAL  RUNS     MEDIAN        P95        MAX  TYPE    OP
  60.000 ms  75.0%  60.000 ms     1  60.000 ms  60.000 ms  60.000 ms  MatMul  dense/MatMul
  20.000 ms  25.0%  20.000 ms     1  20.000 ms  20.000 ms  20.000 ms  Relu    Relu

host: 2 ops, 40.000 ms of self time, summed over threads
  SELF TIME  SHARE      TOTAL   RUNS     MEDIAN        P95        MAX  TYPE    OP
  30.000 ms  75.0%  30.000 ms  1,200  30.000 ms  30.000 ms  30.000 ms  MatMul  b
  10.000 ms  25.0%  90.000 ms      1  10.000 ms  10.000 ms  10.000 ms  MatMul  a

RUNS of an op on a device: the kernels that one run of it launched count as one, if known
"""
    )


def test_sorted_and_cut(peakline, path):
    out = peakline("ops", path, "--sort", "total", "--top", "1").out
    assert out.count("  and 1 more op\n") == 2
    assert out.splitlines()[-4].split()[-1] == "a"
    told = json.loads(peakline("ops", path, "--sort", "count", "--top", "2", "--json").out)
    assert [row["op"] for row in told["ops"]] == ["b", "Relu"]
    assert len(json.loads(peakline("ops", path, "--json").out)["ops"]) == 4


@each_row(
    ("sort", "first", "column"),
    [
        ("self", "75.0% of the device's self time: dense/MatMul", "SELF TIME"),
        ("total", "60.000 ms in total: dense/MatMul", "TOTAL"),
        ("median", "the median run takes 60.000 ms: dense/MatMul", "MEDIAN"),
        ("max", "the longest run takes 60.000 ms: dense/MatMul", "MAX"),
        ("count", "1 run: Relu", "RUNS"),
    ],
)
def test_what_rows_are_ordered_by_is_said_first_and_shown_at_any_width(
    peakline, terminal, path, sort, first, column
):
    terminal(60)
    lines = peakline("ops", path, "--sort", sort).out.splitlines()
    assert lines[0] == first
    heads = [line.strip() for line in lines if "SELF TIME" in line]
    assert len(heads) == 2
    assert all(line.startswith(f"{column} ") for line in heads)


def test_a_wrong_order_or_number_is_a_usage_error(peakline, path):
    assert peakline("ops", path, "--sort", "colour").code == 2
    assert peakline("ops", path, "--top", "0").code == 2


def test_kernels(peakline, path):
    out = peakline("ops", path, "--kernels").out
    assert (
        out
        == f"""\
100.0% of the kernels' time: gemm
{path} (fake, host worker-0, 1.234 ns)

1 kernel, 8.000 ms, summed over devices and their streams
     TOTAL   SHARE  RUNS    MEDIAN       P95       MAX  OCCUPANCY  TENSOR CORES  GRID     \
BLOCK    OP            KERNEL
  8.000 ms  100.0%     4  2.000 ms  3.000 ms  3.000 ms        50%  not used      128,1,1  \
256,1,1  dense/MatMul  gemm
"""
    )
    told = json.loads(peakline("ops", path, "--kernels", "--json").out)
    assert list(told) == ["profile", "kernels", "warnings"]
    assert told["kernels"] == [KERNEL]


def test_a_profile_without_ops(monkeypatch, peakline, tmp_path):
    path = made(monkeypatch, tmp_path, allocator_events=[])
    assert peakline("ops", path).out.endswith("\n\nno ops in this profile\n")
    assert peakline("ops", path, "--kernels").out.endswith("\n\nno GPU kernels in this profile\n")
    assert json.loads(peakline("ops", path, "--json").out)["ops"] == []


def test_hostile_names_are_shown_as_text(monkeypatch, peakline, tmp_path):
    path = made(monkeypatch, tmp_path, op_stats=[op("\x1b[2J[red]", "host", 1)])
    assert "\\x1b[2J[red]" in peakline("ops", path).out


def test_a_narrow_terminal_has_fewer_numbers_and_whole_lines(
    monkeypatch, terminal, peakline, tmp_path
):
    terminal(80)
    path = made(monkeypatch, tmp_path, op_stats=[op("begin" + "x" * 90 + "end", "host", 1)])
    *lines, left_out = peakline("ops", path).out.splitlines()
    assert left_out == "(P95, MAX, TYPE left out: 80 columns)"
    assert lines[-2].split() == ["SELF", "TIME", "SHARE", "TOTAL", "RUNS", "MEDIAN", "OP"]
    assert len(lines[-1]) == 80
    assert lines[-1].split()[-1].startswith("beginx")
    assert lines[-1].endswith("xend")


@each_row(
    ("ps", "text"), [(0, "0 ns"), (2_000, "2 ns"), (1_500_000, "1.500 us"), (10**8, "0.100 ms")]
)
def test_short_times_have_digits(monkeypatch, peakline, tmp_path, ps, text):
    row = {**op("a", "host", 1), "self_ps": ps}
    path = made(monkeypatch, tmp_path, op_stats=[row])
    assert peakline("ops", path).out.splitlines()[-1].strip().startswith(f"{text}  ")


def test_a_session_of_several_hosts_is_told_host_after_host(peakline):
    session = DATA / "sessions/tf2_multihost"
    run = peakline("ops", session, "--top", "1")
    assert (run.code, run.err) == (0, "")
    heads = [line for line in run.out.splitlines() if line.startswith("host localhost")]
    assert heads == ["host localhost_47507", "host localhost_56665"]
    told = json.loads(peakline("ops", session, "--json", "--top", "1").out)
    assert [host["profile"]["host"] for host in told["hosts"]] == [
        "localhost_47507", "localhost_56665",
    ]  # fmt: skip
    alone = json.loads(peakline("ops", session, "--host", "localhost_47507", "--json").out)
    assert alone["ops"][0] == told["hosts"][0]["ops"][0]


@pytest.mark.parametrize("category", [{"cat": "Op"}, {}], ids=["categories", "none"])
def test_the_timeline_of_tensorflow(peakline, tmp_path, category):
    def event(kind, begin, length, **arguments):
        return {
            "ph": "X", "pid": 1, "tid": 0, "name": kind, "ts": begin, "dur": length,
            "args": arguments, **category,
        }  # fmt: skip

    events = [
        event("MatMul", 0, 5, name="dense/MatMul", op="MatMul", input0="x"),
        event("MatMul", 10, 7, name="dense/MatMul", op="MatMul"),
        event("MatMul", 20, 2, name="logits", op="MatMul"),
        event("Other", 30, 9, name="logits", op="MatMul"),  # somebody else's arguments
        event("plain", 40, 9),
    ]
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps({"traceEvents": events}))
    document = json.loads(peakline("ops", path, "--json").out)
    assert [
        (one["op"], one["op_type"], one["occurrences"], one["self_ps"]) for one in document["ops"]
    ] == [("dense/MatMul", "MatMul", 2, 12 * 10**6), ("logits", "MatMul", 1, 2 * 10**6)]


def test_the_timeline_has_the_ops_of_its_step_stats(peakline):
    def ops(name):
        path = DATA / "run_metadata" / name
        found = json.loads(peakline("ops", path, "--json", "--top", "1000").out)["ops"]
        return {one["op"]: (one["op_type"], one["occurrences"], one["total_ps"]) for one in found}

    timeline, stats = ops("tf1_cnn_2.timeline_show_memory.json.gz"), ops("tf1_cnn_2.pb.gz")
    assert len(timeline) == 137
    assert timeline.keys() == stats.keys()
    for name, (kind, count, total) in timeline.items():
        assert (kind, count) == stats[name][:2]
        # The timeline has whole microseconds.
        assert abs(total - stats[name][2]) <= 10**6
