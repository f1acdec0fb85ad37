"""``peakline steps`` on tables made by hand: the screen line by line, and the document."""

import json
import os

import pytest
from tests.cli.made import MS, made, step
from tests.each_row import each_row
from tests.engine.ending import DATA, session_of
from tests.tools.test_step_envelope import S2026, job

from peakline.document.steps import straggler_text
from peakline.timing.steps.variation import Straggler

GPU = "/device:GPU:0"
TWO = [
    step(0, 0, device=GPU, compute=60, host_to_device=40),
    step(1, 110, device=GPU, gap_ms=10, compute=80, host_to_device=40),
]
BUSY = {
    "plane_id": 0, "device": GPU, "start_ps": 0, "end_ps": 250 * MS, "busy_ps": 220 * MS,
    "idle_ps": 30 * MS, "compute_ps": 140 * MS, "communication_ps": 0, "copy_ps": 80 * MS,
    "longest_idle_ps": 10 * MS,
}  # fmt: skip


@pytest.fixture(name="path")
def _path(monkeypatch, tmp_path):
    return made(monkeypatch, tmp_path, step_breakdown=TWO, device_time=[BUSY])


def test_the_screen(peakline, path):
    run = peakline("steps", path)
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        f"""\
median step 110.000 ms: 64% device compute, 36% copies to the device
{path} (fake, host worker-0, 1.234 ns)

2 steps on 1 device, train 0 to train 1
  step time      110.000 ms (median)
  from ... to    100.000 ms ... 120.000 ms
  mean           110.000 ms ± 10.000 ms
  between steps  10.000 ms (median), 10.000 ms (mean)

  where it goes
                             MEAN  SHARE
  device compute        70.000 ms  63.6%  ███████████████████
  copies to the device  40.000 ms  36.4%  ███████████

  DEVICE          BUSY     COMPUTE     COPIES  LONGEST IDLE
  /device:GPU:0  88.0%  140.000 ms  80.000 ms     10.000 ms

  the steps
  STEP             AT        TIME  DEVICE COMPUTE  COPIES TO THE DEVICE
  train 0        0 ns  100.000 ms       60.000 ms             40.000 ms
  train 1  110.000 ms  120.000 ms       80.000 ms             40.000 ms

warning: 36% of the step time goes to copies, most of it to copies to the device
  Copy the next batch while the device computes on this one (prefetch_to_device, pinned memory, """
        """non_blocking=True), or send it in a smaller type and convert it on the device.
  STEP     DEVICE               TIME  COPIES TO THE DEVICE
  train 0  /device:GPU:0  100.000 ms             40.000 ms
  train 1  /device:GPU:0  120.000 ms             40.000 ms
"""
    )


def test_the_json(peakline, path):
    run = peakline("steps", path, "--json")
    assert (run.code, run.err) == (0, "")
    result = json.loads(run.out)
    assert list(result) == [
        "profile", "number_of_steps", "times", "times_by_name", "found_by", "parts", "devices",
        "utilisation", "to_record", "input",
        "times_by_device", "steps", "findings", "warnings",
    ]  # fmt: skip
    assert result["profile"] == {
        "path": str(path),
        "format": "fake",
        "host": "worker-0",
        "duration_ps": 1234,
    }
    assert result["times"]["median_ps"] == 110 * MS
    assert result["parts"][1] == {
        "part": "host_to_device",
        "per_step_ps": 40 * MS,
        "share": 80 / 220,
    }
    assert result["devices"] == [BUSY]
    assert [row["is_slow"] for row in result["steps"]] == [False, False]
    assert (result["steps"][1]["step_id"], result["steps"][1]["gap_before_ps"]) == (1, 10 * MS)
    assert [finding["kind"] for finding in result["findings"]] == ["time_in_copies"]


def test_many_steps_are_cut_to_the_longest(monkeypatch, peakline, tmp_path):
    rows = [
        step(n, 200 * n, host_compute=100 if n in {7, 31} else 10 + (n in range(8, 16)))
        for n in range(40)
    ]
    out = peakline("steps", made(monkeypatch, tmp_path, step_breakdown=rows)).out
    assert "  the 10 longest of 40 steps (all with --json)\n" in out
    shown = [line.split()[1] for line in out.splitlines() if line.startswith("  train")]
    assert shown[:10] == ["7", "31", "8", "9", "10", "11", "12", "13", "14", "15"]
    marked = [line.split()[1] for line in out.splitlines() if line.endswith("  10.0 x median")]
    assert marked == ["7", "31"]


def test_a_profile_without_steps(monkeypatch, peakline, tmp_path):
    path = made(monkeypatch, tmp_path, device_time=[BUSY])
    run = peakline("steps", path)
    assert (run.code, run.err) == (0, "")
    assert "\nnothing in this profile says what a step is: mark them with jax.profiler." in run.out
    assert "  /device:GPU:0  88.0%" in run.out
    result = json.loads(peakline("steps", path, "--json").out)
    assert (result["times"], result["steps"]) == (None, [])
    assert [warning["kind"] for warning in result["warnings"]] == ["no_steps"]


def test_hostile_names_are_shown_as_text(monkeypatch, peakline, tmp_path):
    rows = [step(0, 0, device="\x1b[2J[red]", name="a\nb\x07", compute=9, idle=9)]
    out = peakline("steps", made(monkeypatch, tmp_path, step_breakdown=rows)).out
    assert "\\x1b[2J[red]" in out
    assert "a\\nb\\x07" in out
    assert "\x1b" not in out


def test_a_recorded_session(peakline, sessions):
    (path,) = sessions.glob("tf2_cnn/plugins/profile/*/*.xplane.pb*")
    run = peakline("steps", path)
    assert (run.code, run.err) == (0, "")
    assert "\n16 steps, train 0 to train 15\n  step time      11.740 ms (median)\n" in run.out
    assert "warning" not in run.out


TPUS = [
    step(n, at, device=f"/device:TPU:{core}", name=str(n), compute=60, host_to_device=length)
    for core, lengths in enumerate([(1, 40, 40), (40, 40)])
    for n, (at, length) in enumerate(zip((0, 100, 200)[-len(lengths) :], lengths, strict=True))
]


def test_devices_that_count_apart_are_shown_apart(monkeypatch, peakline, tmp_path):
    path = made(monkeypatch, tmp_path, step_breakdown=TPUS)
    out = peakline("steps", path).out
    assert "\n5 steps on 2 devices, which count them apart\n" in out
    assert "  /device:TPU:0      3  100.000 ms   87.000 ms   61.000 ms  100.000 ms\n" in out
    assert "  /device:TPU:1      2  100.000 ms  100.000 ms  100.000 ms  100.000 ms\n" in out
    shown = [line.split()[:4] for line in out.splitlines() if line.startswith(("  0  ", "  1  "))]
    assert [row[2] for row in shown[:4]] == ["0", "100.000", "100.000", "200.000"]
    result = json.loads(peakline("steps", path, "--json").out)
    assert result["times"]["count"] == 5
    assert sum(part["per_step_ps"] for part in result["parts"]) == result["times"]["mean_ps"]
    assert [times["count"] for times in result["times_by_device"]] == [3, 2]


def test_devices_that_run_side_by_side_have_common_steps(monkeypatch, peakline, tmp_path):
    rows = [
        step(n, 100 * n, device=f"/device:GPU:{core}", compute=90 + core)
        for core in range(2)
        for n in range(3)
    ]
    out = peakline("steps", made(monkeypatch, tmp_path, step_breakdown=rows)).out
    assert "\n3 steps on 2 devices, train 0 to train 2\n  step time    90.500 ms (median)\n" in out
    assert "  train 0  /device:GPU:1        0 ns  91.000 ms" in out


def test_a_single_step_has_no_median(monkeypatch, peakline, tmp_path):
    out = peakline("steps", made(monkeypatch, tmp_path, step_breakdown=[step(0, 0, launch=9)])).out
    assert "\n  step time  9.000 ms\n" in out
    assert "                      TIME   SHARE\n  launching work  9.000 ms  100.0%" in out


def test_a_file_without_time_gives_no_advice_about_steps(peakline):
    out = peakline("steps", DATA / "pprof" / "device_memory.pprof.pb.gz").out
    assert out.endswith("\n\nno time in this file\n")


@each_row("width", [80, 120])
def test_a_terminal_is_kept_to(terminal, peakline, width):
    terminal(width)
    out = peakline("steps", DATA / "programs/time/input_bound.xplane.pb.gz").out
    assert max(len(line) for line in out.splitlines()) <= width
    assert "(xplane, host input_bound, 546.900 ms)\n" in out.replace("\n\n", "\n", 1)
    assert "OCCURRENCES        SELF" in out


def test_a_large_part_of_the_time_stays_longer_than_the_begin(
    terminal, peakline, monkeypatch, tmp_path
):
    parts = {"host_compute": 60, "input_wait": 30, "launch": 2}
    steps = [step(n, 500 * n, name=f"ProfilerStep#{n}", **parts) for n in range(5)]
    steps.append(step(5, 2500, name="ProfilerStep#5", **parts | {"input_wait": 300}))
    path = made(monkeypatch, tmp_path, step_breakdown=steps)
    terminal(80)
    [head] = [line for line in peakline("steps", path).out.splitlines() if "STEP " in line]
    assert head.split() == "STEP TIME WAITING FOR INPUT HOST COMPUTE".split()


MULTIHOST = DATA / "sessions" / "tf2_multihost"


def test_the_steps_of_all_ranks_are_one_table(peakline):
    run = peakline("steps", MULTIHOST)
    assert (run.code, run.err) == (0, "")
    assert "no collectives are recorded: who waits for whom is not known" in run.out
    result = json.loads(peakline("steps", MULTIHOST, "--json").out)
    steps = {row["step"]: row for row in result["steps"]}
    for host in ("localhost_47507", "localhost_56665"):
        alone = json.loads(peakline("steps", MULTIHOST, "--host", host, "--json").out)
        own = {row["name"]: row["wall_ps"] for row in alone["steps"]}
        assert {name: steps[name]["max_wall_ps"] for name in own} == own


def test_a_host_that_cannot_be_read_is_one_line(peakline, tmp_path):
    one, other = sorted(MULTIHOST.glob("plugins/profile/*/*.xplane.pb"))
    session = session_of(tmp_path, {"a.xplane.pb": one, "b.xplane.pb": other})
    os.truncate(session.host("b").path, 7)
    run = peakline("steps", session.path)
    assert run.code == 0
    assert "(job of 1 rank, xplane)" in run.out
    (line,) = run.err.splitlines()
    assert line.startswith("peakline: warning: left out: ")
    assert peakline("steps", session.path, "--strict").code == 3


def test_the_host_that_the_others_wait_for_is_named(peakline, tmp_path):
    files = {"a.xplane.pb": job(S2026, 6), "b.xplane.pb": job(S2026, 1, 9)}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    session = session_of(tmp_path / "session", {name: tmp_path / name for name in files})
    out = peakline("steps", session.path).out
    assert out.startswith(
        "b keeps 1 other rank waiting: a step takes 20.000 ms, without it 15.000 ms (-25%)\n"
    )
    result = json.loads(peakline("steps", session.path, "--json").out)
    assert {row["longest"] for row in result["steps"]} == {"b", None}  # of the last nobody knows


def test_the_line_about_the_device_that_the_others_wait_for():
    one = Straggler("b", "communication", 20, 5 * MS, 100 * MS, 0.25, 0.9)
    assert straggler_text(one, 2, communicates=True) == (
        "straggler: the other devices wait for b: 25% of the step time (5.000 ms in the median "
        "step); it is in collectives for the shortest time in 90% of 20 common steps"
    )
    assert "is not known" in straggler_text(None, 1, communicates=True)
    assert "is not known" in straggler_text(None, 2, communicates=False)
    assert straggler_text(None, 2, communicates=True) == "no device keeps the others waiting"


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


@pytest.fixture(name="path_of_ops")
def _path_of_ops(monkeypatch, tmp_path):
    return made(monkeypatch, tmp_path, op_stats=OPS, kernels=[KERNEL])


def test_the_screen_of_ops(peakline, path_of_ops):
    run = peakline("ops", path_of_ops)
    assert (run.code, run.err) == (0, "")
    assert (
        run.out
        == f"""\
75.0% of the device's self time: dense/MatMul
{path_of_ops} (fake, host worker-0, 1.234 ns)

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


def test_sorted_and_cut(peakline, path_of_ops):
    out = peakline("ops", path_of_ops, "--sort", "total", "--top", "1").out
    assert out.count("  and 1 more op\n") == 2
    assert out.splitlines()[-4].split()[-1] == "a"
    result = json.loads(peakline("ops", path_of_ops, "--sort", "count", "--top", "2", "--json").out)
    assert [row["op"] for row in result["ops"]] == ["b", "Relu"]
    assert len(json.loads(peakline("ops", path_of_ops, "--json").out)["ops"]) == 4


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
    peakline, terminal, path_of_ops, sort, first, column
):
    terminal(60)
    lines = peakline("ops", path_of_ops, "--sort", sort).out.splitlines()
    assert lines[0] == first
    heads = [line.strip() for line in lines if "SELF TIME" in line]
    assert len(heads) == 2
    assert all(line.startswith(f"{column} ") for line in heads)


def test_a_wrong_order_or_number_is_a_usage_error(peakline, path_of_ops):
    assert peakline("ops", path_of_ops, "--sort", "colour").code == 2
    assert peakline("ops", path_of_ops, "--top", "0").code == 2


def test_kernels(peakline, path_of_ops):
    out = peakline("ops", path_of_ops, "--kernels").out
    assert (
        out
        == f"""\
100.0% of the kernels' time: gemm
{path_of_ops} (fake, host worker-0, 1.234 ns)

1 kernel, 8.000 ms, summed over devices and their streams
     TOTAL   SHARE  RUNS    MEDIAN       P95       MAX  OCCUPANCY  TENSOR CORES  GRID     \
BLOCK    OP            KERNEL
  8.000 ms  100.0%     4  2.000 ms  3.000 ms  3.000 ms        50%  not used      128,1,1  \
256,1,1  dense/MatMul  gemm
"""
    )
    result = json.loads(peakline("ops", path_of_ops, "--kernels", "--json").out)
    assert list(result) == ["profile", "kernels", "warnings"]
    assert result["kernels"] == [KERNEL]


def test_a_profile_without_ops(monkeypatch, peakline, tmp_path):
    path = made(monkeypatch, tmp_path, allocator_events=[])
    assert peakline("ops", path).out.endswith("\n\nno ops in this profile\n")
    assert peakline("ops", path, "--kernels").out.endswith("\n\nno GPU kernels in this profile\n")
    assert json.loads(peakline("ops", path, "--json").out)["ops"] == []


def test_hostile_names_are_shown_as_text_of_ops(monkeypatch, peakline, tmp_path):
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


def test_the_ops_of_all_ranks_are_one_table(peakline):
    session = DATA / "sessions/tf2_multihost"
    run = peakline("ops", session, "--top", "1")
    assert (run.code, run.err) == (0, "")
    assert "self time in the whole profile, median of the ranks\n" in run.out
    (row,) = json.loads(peakline("ops", session, "--json", "--top", "1").out)["ops"]
    assert (row["op"], row["side"], row["max_rank"]) == ("matmul", "host", "localhost_56665")
    alone = [
        json.loads(peakline("ops", session, "--host", f"localhost_{host}", "--json").out)["ops"][0]
        for host in (56665, 47507)
    ]
    assert [one["op"] for one in alone] == ["matmul", "matmul"]
    assert [row["max_ps"], row["min_ps"]] == [one["self_ps"] for one in alone]
    assert peakline("ops", session, "--sort", "count").code == 2


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
        result = json.loads(peakline("ops", path, "--json", "--top", "1000").out)["ops"]
        return {one["op"]: (one["op_type"], one["occurrences"], one["total_ps"]) for one in result}

    timeline, stats = ops("tf1_cnn_2.timeline_show_memory.json.gz"), ops("tf1_cnn_2.pb.gz")
    assert len(timeline) == 137
    assert timeline.keys() == stats.keys()
    for name, (kind, count, total) in timeline.items():
        assert (kind, count) == stats[name][:2]
        # The timeline has whole microseconds.
        assert abs(total - stats[name][2]) <= 10**6
