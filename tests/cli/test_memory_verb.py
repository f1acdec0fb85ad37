"""``peakline memory``: the screen, the document and its details."""

import gzip
import json
import pickle
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.memory.records import alloc, free, history, records, steps_at

import peakline
from peakline.document.memory import steps_near
from peakline.errors import UsageError
from peakline.findings.finding import Finding
from peakline.memory.growth.series import find_growth
from peakline.memory.marks import find_marks
from peakline.render.terminal.memory import evidence_part
from peakline.render.terminal.screen import show
from peakline.text import parse_time

MIB = 1 << 20

STEPS = [{"step_id": 0, "name": "train 170", "start_ps": 0, "end_ps": 9}]
ROWS = [
    alloc(1, 3 * 2**20, op="dense/MatMul", region_type="output", data_type="float",
          shape="[3, 3]", step_id=0, allocator="gpu", in_use_bytes=2**23, free_bytes=2**25,
          reserved_bytes=0, fragmentation=0.25, peak_bytes=2**24, time_ps=5 * 10**9),
    alloc(2, 512, allocator="gpu", in_use_bytes=2**23 + 512, free_bytes=2**25 - 512,
          reserved_bytes=0, fragmentation=0.25, peak_bytes=2**24, time_ps=6 * 10**9),
    free(2, 512, allocator="gpu", in_use_bytes=2**23, time_ps=7 * 10**9),
]  # fmt: skip


def test_the_screen(peakline, opened):
    path = opened(ROWS, STEPS)
    run = peakline("memory", path)
    assert (run.code, run.err) == (0, "")
    assert (
        run.out
        == f"""\
peak 8.0 MiB at 6.000 ms, 20% of the capacity; 62% of it (before profile), 37% dense/MatMul
{path} (fake, host worker-0, 1.234 ns)

gpu
  peak             8.0 MiB (8,389,120 bytes) at 6.000 ms
  capacity         40.0 MiB, the peak takes 20.0%
  lifetime peak    16.0 MiB as the allocator reported
  fragmentation    25.0% at the peak
  records          2 allocations, 1 deallocation
  live at the end  3.0 MiB

  live at the peak
     SIZE  SHARE  COUNT  OP                REGION  TYPE   SHAPE   STEP
  5.0 MiB  62.5%         (before profile)
  3.0 MiB  37.5%      1  dense/MatMul      output  float  [3, 3]  0 (train 170)
    512 B   0.0%      1  (no op)
"""
    )


def test_the_json(peakline, opened):
    path = opened(ROWS, STEPS)
    run = peakline("memory", path, "--json")
    assert (run.code, run.err) == (0, "")
    document = json.loads(run.out)
    assert document["profile"] == {
        "path": str(path),
        "format": "fake",
        "host": "worker-0",
        "duration_ps": 1234,
    }
    assert (document["findings"], document["warnings"]) == ([], [])
    (allocator,) = document["allocators"]
    assert allocator["peak_bytes"] == 8389120 == sum(b["bytes"] for b in allocator["peak_buffers"])
    assert allocator["peak_buffers"][1] == {
        "op": "dense/MatMul",
        "region_type": "output",
        "data_type": "float",
        "shape": "[3, 3]",
        "bytes": 3 * 2**20,
        "count": 1,
        "start_step": 0,
    }


def test_one_allocator(peakline, opened):
    path = opened([*ROWS, alloc(1, 9, allocator="cpu", time_ps=8 * 10**9)])
    document = json.loads(peakline("memory", path, "--json").out)
    assert [a["allocator"] for a in document["allocators"]] == ["cpu", "gpu"]
    document = json.loads(peakline("memory", path, "--json", "--allocator", "cpu").out)
    assert [a["allocator"] for a in document["allocators"]] == ["cpu"]
    run = peakline("memory", path, "--allocator", "tpu")
    assert (run.code, run.err.count("\n")) == (3, 1)
    assert "cpu, gpu" in run.err


def test_a_step_by_id_or_name(peakline, opened):
    path = opened(ROWS, STEPS)
    for step in ("0", "train 170"):
        run = peakline("memory", path, "--step", step)
        assert "peak while step 0 (train 170) ran  8.0 MiB (8,388,608 bytes)" in run.out
    run = peakline("memory", path, "--step", "7")
    assert (run.code, run.out) == (3, "")
    assert "no step '7'" in run.err


def test_a_step_without_memory_events(peakline, opened):
    path = opened([alloc(1, 1, time_ps=50)], STEPS)
    run = peakline("memory", path, "--step", "0")
    assert (run.code, run.out) == (0, f"{path}: no memory events in step 0\n")


def test_many_rows_are_cut_and_counted(peakline, opened):
    run = peakline("memory", opened([alloc(n, 1024 * (100 - n), op=f"op{n}") for n in range(25)]))
    assert "op19" in run.out
    assert "op20" not in run.out
    assert "  and 5 more rows, 390.0 KiB (all with --json)\n" in run.out


def test_findings_and_hostile_names(peakline, opened):
    path = opened([alloc(1, 99, op="[red]\x1b[2J\n", in_use_bytes=99, free_bytes=1)])
    out = peakline("memory", path).out
    assert "warning: (unnamed allocator): the peak takes 99.0% of the capacity\n  Reduce" in out
    assert "[red]\\x1b[2J\\n" in out
    assert "\x1b" not in out


def test_what_could_not_be_followed_is_a_warning_and_an_error_when_strict(peakline, opened):
    path = opened([alloc(None, 1)], losses={"allocator_events": ("truncated", "half\nan event", 3)})
    run = peakline("memory", path, "--json")
    assert run.code == 0
    assert json.loads(run.out)["warnings"][0] == {
        "kind": "truncated",
        "count": 3,
        "detail": "half\nan event",
    }
    assert run.err.splitlines() == [
        "peakline: warning: half\\nan event (3 times) [truncated]",
        (
            "peakline: warning: (unnamed allocator): 1 record without id and address, whose "
            "buffers cannot be followed [untracked_allocation]"
        ),
    ]
    run = peakline("memory", path, "--strict")
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert "truncated (3)" in run.err
    path = opened([alloc(None, 1)])
    run = peakline("memory", path, "--json", "--strict")
    assert (run.code, run.out) == (3, "")
    assert "untracked_allocation (1)" in run.err


def test_every_sample_is_explained_to_the_byte_without_a_rest(peakline, sample):
    run = peakline("memory", sample, "--json")
    assert run.code == 0
    document = json.loads(run.out)
    assert bool(document["allocators"]) is ("tf2" in str(sample))
    for allocator in document["allocators"]:
        assert sum(b["bytes"] for b in allocator["peak_buffers"]) == allocator["peak_bytes"]
        assert "(unattributed)" not in {b["op"] for b in allocator["peak_buffers"]}


def test_the_memory_of_a_real_training_job(peakline, sessions):
    document = json.loads(peakline("memory", sessions / "tf2_cnn", "--json", "--strict").out)
    assert document["profile"]["format"] == "xplane"
    assert document["profile"]["host"] == "vm"
    assert document["findings"] == []
    (allocator,) = document["allocators"]
    buffers = allocator.pop("peak_buffers")
    assert allocator.pop("peak_time_ps") <= document["profile"]["duration_ps"]
    allocator.pop("peak_step")
    for name in ("savings", "growth", "fragmentation", "churn", "high_moments"):
        assert allocator.pop(name), name
    assert allocator == {
        "allocator": "bfc_cpu_allocator_for_gpu",
        "capacity_bytes": 64 * 2**30,
        "pool_bytes": None,
        "peak_bytes": 76584448, "lifetime_peak_bytes": 76863232, "fragmentation_at_peak": 0.387264,
        "allocations": 1986, "deallocations": 1984, "unmatched_deallocations": 3,
        "untracked_allocations": 0, "live_at_end_bytes": 413440, "reserved": None,
        "program_at_peak": None,
    }  # fmt: skip
    biggest = {(b["op"].split("/")[-2], b["shape"], b["bytes"]) for b in buffers[:2]}
    assert {(name, size) for name, _, size in biggest} == {("convolution", 2**25)}
    assert {shape for _, shape, _ in biggest} == {"[201,900,27]", "[56,784,144]"}


def test_a_truncated_file_is_answered_from_what_is_whole(peakline, sessions, tmp_path):
    (source,) = (sessions / "tf2_cnn").rglob("*.gz")
    content = gzip.decompress(source.read_bytes())
    path = tmp_path / "half.xplane.pb"
    path.write_bytes(content[: len(content) // 2])
    run = peakline("memory", path, "--json")
    assert run.code == 0
    warnings = json.loads(run.out)["warnings"]
    assert warnings
    result = [warning for warning in warnings if warning["kind"] != "no_memory_events"]
    assert {warning["kind"] for warning in result} == {"truncated", "names_lost"}
    assert run.err.count("peakline: warning: ") == len(result)
    run = peakline("memory", path, "--json", "--strict")
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert str(path) in run.err


def test_the_demo_is_the_memory_answer_for_the_bundled_session(peakline, sessions):
    demo = peakline("demo")
    assert (demo.code, demo.err) == (0, "")
    sample = peakline("memory", sessions / "tf2_cnn")
    own, other = demo.out.splitlines(), sample.out.splitlines()
    # The second line names the file.
    assert [own[0], *own[2:]] == [other[0], *other[2:]]
    assert json.loads(peakline("demo", "--json").out)["allocators"][0]["peak_bytes"] == 76584448


@each_row("host", ["localhost_47507", "localhost:56665"])
def test_a_host_of_several(peakline, sessions, host):
    run = peakline("memory", sessions / "tf2_multihost")
    assert (run.code, "job of 2 ranks" in run.out) == (0, True)
    together = json.loads(peakline("memory", sessions / "tf2_multihost", "--json").out)
    run = peakline("memory", sessions / "tf2_multihost", "--host", host, "--json")
    alone = json.loads(run.out)
    assert alone["profile"]["path"].endswith(f"{host.replace(':', '_')}.xplane.pb")
    (own,) = (one for one in together["ranks"] if one["title"] == host.replace(":", "_"))
    peaks = [one["peak_bytes"] for one in own["allocators"]]
    assert peaks == [one["peak_bytes"] for one in alone["allocators"]]


def test_a_profile_without_memory_events(peakline, sessions):
    run = peakline("memory", sessions / "jax_cpu")
    assert (run.code, run.err) == (0, "")
    first, _, rest = run.out.partition("\n")
    assert first.endswith(
        ": no memory events in this profile; JAX records memory on accelerators only; of the heap "
        "on a CPU save jax.profiler.save_device_memory_profile"
    )
    # Of the four devices one ran a program that needs more than what all of them ran.
    assert re.findall(r"^(?:CPU.*|  at least.*)", rest, re.MULTILINE) == [
        "CPU:0",
        "  at least  2.5 MiB (2,629,716 bytes)",
        "CPU:1, CPU:2, CPU:3",
        "  at least  320.0 KiB (327,684 bytes)",
    ]
    run = peakline("memory", sessions / "jax_cpu", "--json")
    document = json.loads(run.out)
    assert document["allocators"] == []
    assert [(one["device"], one["module"], one["runs"]) for one in document["programs"]] == [
        ("CPU:0", "jit_train_step", 10),
        *((f"CPU:{number}", "jit_sharded", 10) for number in (1, 2, 3)),
    ]
    for one in document["programs"]:
        assert sum(buffer["bytes"] for buffer in one["peak_buffers"]) == one["peak_bytes"]
    assert [warning["kind"] for warning in document["warnings"]] == ["no_memory_events"]


def test_nameless_steps_are_one_row_and_long_names_are_cut(peakline, opened):
    rows = [
        alloc(1, 100, op="mm", step_id=-4590066616686678053),
        alloc(2, 100, op="mm", step_id=-4852116232933722624),
        alloc(3, 50, op="mm", step_id=7),
    ]
    steps = [{"step_id": 7, "name": "x:0,y:0->" + "loss:0/" * 30, "start_ps": 0, "end_ps": 3}]
    out = peakline("memory", opened(rows, steps)).out
    assert [line.split()[2:] for line in out.splitlines() if " mm " in line] == [
        ["80.0%", "2", "mm", "2", "steps"],
        ["20.0%", "1", "mm", "7", "(x:0,y:0->loss:0/loss:0/loss…)"],
    ]


def test_an_allocator_that_nobody_can_follow_has_no_peak(peakline, opened):
    out = peakline("memory", opened([{"activity": "allocation", "requested_bytes": 8}] * 3)).out
    assert "not known: its records have no ids" in out
    assert "live at the peak" not in out


def test_one_moment_has_no_records(peakline, tmp_path):
    path = tmp_path / "train.log"
    path.write_text(
        "BFCAllocator dump for gpu\nInUse at 7f00 of size 256 next 1\nInUse at 7e00 of size 512 "
        "next 2\nStats: \nLimit: 1024\nInUse: 768\nMaxInUse: 768\nNumAllocs: 2\n"
        "MaxAllocSize: 512\n\n"
    )
    out = peakline("memory", path).out
    assert (
        out.partition("\n\ngpu\n")[2]
        == """\
  in use    768 B (768 bytes) in 2 buffers
  capacity  1.0 KiB, 75.0% of it in use
  ops       no op recorded for 2 chunks: the dump has sizes alone; TensorFlow lists a step's \
tensors by op with RunOptions(report_tensor_allocations_upon_oom=True)

  held by
   SIZE  SHARE  COUNT  OP       REGION
  512 B  66.7%      1  (no op)  chunk of 512B
  256 B  33.3%      1  (no op)  chunk of 256B
"""
    )
    (one,) = json.loads(peakline("memory", path, "--json").out)["allocators"]
    assert (one["peak_bytes"], one["capacity_bytes"]) == (768, 1024)
    assert "gpu  in use 768 B, 75% of the capacity; 67% of it chunk of 512B, no op recorded\n" in (
        peakline("summary", path).out
    )


def test_a_list_of_tensors_is_not_all_that_is_in_use(peakline, tmp_path):
    path = tmp_path / "train.log"
    path.write_text(
        "Current usage from device: /device:GPU:0, allocator: GPU_0_bfc\n"
        "  3.00MiB from conv/Conv2D\n  1.00MiB from conv/Conv2D\n"
    )
    out = peakline("memory", path).out
    assert (
        out.partition("\n\nGPU_0_bfc\n")[2]
        == """\
  listed  4.0 MiB (4,194,304 bytes) in 2 buffers, which need not be all that was in use

  held by
     SIZE   SHARE  COUNT  OP
  4.0 MiB  100.0%      2  conv/Conv2D
"""
    )
    assert "GPU_0_bfc  listed 4.0 MiB; 100% of it conv/Conv2D\n" in peakline("summary", path).out


def snapshot(tmp_path, entries):
    """A file of PyTorch's: 32 MiB reserved, 8 in use, 4 that another stream still uses."""
    sizes = ((8, 7, "active_allocated"), (4, 4, "active_pending_free"), (20, 0, "inactive"))
    blocks = [
        {"size": size * MIB, "requested_size": request * MIB, "state": state, "frames": []}
        for size, request, state in sizes
    ]
    segment = {
        "device": 0, "address": 1 << 40, "total_size": 32 * MIB, "stream": 0,
        "segment_type": "large", "blocks": blocks,
    }  # fmt: skip
    keys = ("action", "addr", "size", "time_us")
    history = [dict(zip(keys, entry, strict=True), stream=0, frames=[]) for entry in entries]
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [history]}))
    return path


def test_a_snapshot_says_reserved_allocated_requested_and_free(peakline, tmp_path):
    path = snapshot(
        tmp_path,
        [
            ("segment_alloc", 1 << 41, 16 * MIB, 1),
            ("alloc", 1 << 41, 16 * MIB, 2),
            ("free_requested", 1 << 41, 16 * MIB, 3),
            ("free_completed", 1 << 41, 16 * MIB, 3),
            ("segment_free", 1 << 41, 16 * MIB, 4),
        ],
    )
    out = peakline("memory", path).out
    assert (
        out.partition("cuda:0\n")[2].partition("\n\n")[0]
        == """\
  peak allocated    28.0 MiB (29,360,128 bytes) at 0.001 ms
  records           1 allocation, 1 deallocation
  live at the end   12.0 MiB
  reserved          48.0 MiB at the peak, 32.0 MiB at the end; nvidia-smi shows this and the CUDA \
context
  of it at the end  8.0 MiB allocated, 4.0 MiB awaiting free, 20.0 MiB free; 11.0 MiB were \
requested"""
    )
    (one,) = json.loads(peakline("memory", path, "--json").out)["allocators"]
    assert one["reserved"] == {
        "reserved_bytes": 32 * MIB,
        "allocated_bytes": 8 * MIB,
        "awaiting_free_bytes": 4 * MIB,
        "requested_bytes": 11 * MIB,
        "free_bytes": 20 * MIB,
        "at_peak_bytes": 48 * MIB,
    }
    summary = peakline("summary", path).out
    assert "cuda:0  peak 28.0 MiB allocated at 0.001 ms, 48.0 MiB reserved; " in summary


def test_a_snapshot_without_a_history_is_one_moment(peakline, tmp_path):
    path = snapshot(tmp_path, [])
    out = peakline("memory", path).out
    assert (
        out
        == f"""\
in use 12.0 MiB, 32.0 MiB reserved; 100% of it (before profile)
{path} (torch_snapshot)

cuda:0
  in use    12.0 MiB (12,582,912 bytes) in 0 buffers
  reserved  32.0 MiB; nvidia-smi shows this and the CUDA context
  of it     8.0 MiB allocated, 4.0 MiB awaiting free, 20.0 MiB free; 11.0 MiB were requested

  held by
      SIZE   SHARE  OP
  12.0 MiB  100.0%  (before profile)
"""
    )
    assert "cuda:0  in use 12.0 MiB, 32.0 MiB reserved; " in peakline("summary", path).out
    assert peakline("memory", path, "--at", "0ms").code == 2


def test_a_heap_has_no_peak(peakline, sessions):
    heap = sessions.parent / "pprof/device_memory.pprof.pb.gz"
    for verb in ("memory", "summary"):
        run = peakline(verb, heap)
        assert run.code == 0
        assert "peak" not in run.out.partition("\n")[2]
        assert "in use " in run.out


def test_a_run_of_a_function_is_told_by_its_order(peakline, sessions):
    path = sessions.parent / "memory_log/eager_default_allocator.log.gz"
    run = peakline("memory", path, "--step", "run 2")
    assert "  peak while run 2 ran  48.0 KiB (49,156 bytes) at 58.287 ms in run 2\n" in run.out
    assert peakline("memory", path, "--step", "-475782904396403610").out == run.out
    out = peakline("memory", path).out
    assert " at 63.255 ms in run 20\n" in out
    assert any(line.split()[-2:] == ["-6", "(unknown)"] for line in out.splitlines())
    (one,) = json.loads(peakline("memory", path, "--json").out)["allocators"]
    assert one["peak_step"] == -4590066616686678053
    result = peakline(
        "sql", path, "select step_id from steps where name = 'run 20'", "--format", "csv"
    )
    assert result.out.split() == ["step_id", "-4590066616686678053"]


def test_a_lifetime_peak_below_the_peak_says_why(peakline, opened):
    row = alloc(1, 3, op="a", in_use_bytes=3, reserved_bytes=90, peak_bytes=5)
    result = (
        "lifetime peak    5 B as the allocator reported for its heap, without the 90 B reserved"
    )
    assert result in peakline("memory", opened([row])).out
    row = alloc(1, 3, op="a", in_use_bytes=3, reserved_bytes=1, peak_bytes=5)
    assert (
        "lifetime peak    5 B as the allocator reported\n" in peakline("memory", opened([row])).out
    )


PROGRAMS = DATA / "programs"
MIB_OF_MEMORY_DETAILS = 2**20


def program(name):
    return PROGRAMS / f"{name}.xplane.pb.gz"


@pytest.fixture(name="screen")
def _screen(peakline):
    def run(path, *words):
        run = peakline("memory", path, *words)
        assert run.code == 0
        return run.out

    return run


def sections(out):
    """The indented blocks of the screen by their first line."""
    blocks = out.replace("\n\n", "\0").split("\0")
    return {block.strip().split("\n")[0].strip(): block for block in blocks}


def test_a_leak_is_left_to_its_finding(screen):
    out = screen(program("leak_list"))
    assert (
        "  between steps    12.0 MiB in use after the first of 20 steps, 26.1 MiB after the last\n"
        "  allocated        9.8 MiB per step in 17 allocations, 0.3 times the peak\n"
    ) in out
    result = sections(out)["what would lower the peak"]
    # Recomputing what a list keeps, dropping "older copies" of it or halving it is no advice.
    assert [line.split()[:6:2] for line in result.splitlines()[2:]] == [["3.4", "1.4", "28.3"]]
    assert "compute it in pieces, or fused  gradient_tape/model/head/MatMul/MatMul_1" in result
    live = [line.split() for line in sections(out)["live at the peak"].splitlines()]
    (row,) = [line for line in live if "model/hidden/MatMul" in line]
    assert row[:2] == ["14.4", "MiB"]
    assert " ".join(row[3:]) == "18 model/hidden/MatMul output float [192, 1024] 18 steps"


def test_the_fullest_steps_are_counted(screen):
    every = "  near the peak    within 5% of it in 14 of 14 steps\n"
    assert every in screen(program("huge_temporary"))
    assert every.replace("14 of", "1 of") in screen(program("huge_temporary_once"))


@given(records)
@settings(max_examples=200)
def test_steps_near_the_peak_are_those_a_person_would_count(rows):
    result = history(rows)
    steps = steps_at(*range(0, len(rows) + 1, 4))
    for number in range(len(result.lifetimes.allocators)):
        growth = find_growth(result, number, find_marks(result, number, steps))
        if growth is None:
            continue
        own = result.rows_of(number).tolist()
        used = dict(zip(own, result.used[own].tolist(), strict=True))
        bounds = [growth.marks.start, *growth.marks.rows.tolist()]
        near = 0
        for first, end in pairwise(bounds):
            inside = [used[row] for row in own if first <= row < end]
            before = [used[row] for row in own if row < first][-1:]
            near += max(inside + before, default=0) >= 0.95 * max(0, *used.values())
        assert steps_near(result, growth) == near


def test_a_fragmented_pool_is_described(screen):
    out = screen(program("fragmentation"))
    assert "of the pool" not in sections(out)["what would lower the peak, each alone"]
    assert (
        "  Buffers of the profile lay on 52.9 MiB, though they took at most 30.3 MiB at a time; "
        "22.6 MiB of that only because of the pieces, in 12 allocations.\n"
        "  The free pieces at 389.651 ms: 1 of 2.0 MiB to 4.0 MiB, 18 of 1.0 MiB to 2.0 MiB, "
        "1 of 128.0 KiB to 256.0 KiB.\n"
    ) in out


def test_the_rows_that_matter_stand_under_a_finding(capsys):
    rows = tuple(
        {"op": f"op\x1b{n}", "data_type": "float", "shape": "[4]", "since_step": step,
         "bytes_per_step": rate, "kept_bytes": chosen}
        for n, (step, rate, chosen) in enumerate(
            [(7, 4096, 8192), (8, 2048, 0), (9, 1, 81), (9, 1, 82), (None, 0, 8192)]
        )
    )  # fmt: skip
    finding = Finding("leak", "warning", "", {"steps_found_by": "steps"}, "", rows)
    show(evidence_part(finding, None, {7: "train 7"}))
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["PER", "STEP", "RETAINED", "OP", "TYPE", "SHAPE", "SINCE", "STEP"],
        ["4.0", "KiB", "8.0", "KiB", "op\\x1b0", "float", "[4]", "7", "(train", "7)"],
        ["2.0", "KiB", "0", "B", "op\\x1b1", "float", "[4]", "8"],
        ["1", "B", "82", "B", "op\\x1b3", "float", "[4]", "9"],
        ["0", "B", "8.0", "KiB", "op\\x1b4", "float", "[4]"],
    ]
    for few in (rows[:1], rows[:1] + rows[2:3], ()):
        assert evidence_part(replace(finding, rows=few), None, {}) == []
    show(evidence_part(replace(finding, evidence={"steps_found_by": "period"}), None, {}))
    out = capsys.readouterr().out
    assert "SINCE" not in out
    assert out.split()[:2] == ["PER", "REPETITION"]


def test_repetitions_that_were_found_are_not_called_steps(screen):
    out = screen(program("leak_functions"))
    lines = [line for line in out.splitlines() if "repetition" in line]
    assert [line[:23].strip() for line in lines[:4]] == [
        "steps found",
        "near the peak",
        "between repetitions",
        "allocated",
    ]
    assert lines[0].split(maxsplit=2)[2].startswith("17 repetitions of about 20 allocations; each")
    assert "768.0 KiB more stay in memory with every repetition since repetition 0" in lines[4]
    assert "more repetitions" in lines[4]
    assert " steps, " not in out


def test_moments_of_other_buffers(screen):
    out = sections(screen(program("doubled_batch")))
    # Of the two others there are, one has little that the peak does not have.
    assert [line.split() for line in out["almost as full, of other buffers"].splitlines()[2:]] == [
        "22.6 MiB 1 91.505 ms 3 (train 3) 3.5 MiB optimizer/ResourceApplyAdam_1 float [1024,512]"
        .split()
    ]  # fmt: skip
    for name in ("huge_temporary", "huge_temporary_healthy"):
        assert "almost as full" not in screen(program(name))


def test_a_step_has_its_own_savings_and_no_lines_about_the_whole(screen):
    whole, out = screen(program("huge_temporary")), screen(program("huge_temporary"), "--step", "3")
    title = "what would lower the peak, each alone"
    for text, saves, peak in ((whole, "24.5", "19.5"), (out, "27.0", "16.6")):
        first = sections(text)[title].splitlines()[2].split()
        assert (first[0], first[4]) == (saves, peak)
    assert "between steps" not in out
    assert "almost as full" not in out


def test_few_records_and_single_moments_are_told_plainly(screen, opened):
    rows = [alloc(n, MIB_OF_MEMORY_DETAILS, op=f"op{n}") for n in range(4)] + [
        free(n) for n in range(4)
    ]
    for path in (opened(rows), DATA / "pprof" / "device_memory.pprof.pb.gz"):
        assert "what would lower" not in screen(path)
        assert "between steps" not in screen(path)


def test_nothing_tells_steps_apart(screen, opened):
    rows = []
    for n in range(60):
        rows += [
            alloc(n, MIB_OF_MEMORY_DETAILS, op=f"op{n}"),
            alloc(1000 + n, 1, op=f"small{n}"),
            free(n),
        ]
    out = screen(opened(rows))
    assert "  between steps    not known: neither steps nor a period in the allocations\n" in out
    assert "  allocated  " not in out


def test_what_a_loop_repeats_is_named(screen, opened):
    rows, steps, name = [], [], "scan/while/body/" + "x" * 80 + "/einsum"
    for step in range(6):
        start = len(rows)
        for n in range(12):
            rows += [
                alloc(n, MIB_OF_MEMORY_DETAILS, op=name, data_type="float", shape="[512, 512]"),
                free(n),
            ]
        steps.append({"step_id": step, "name": str(step), "start_ps": start,
                      "end_ps": len(rows) - 1})  # fmt: skip
    (line,) = [line for line in screen(opened(rows, steps)).splitlines() if "  allocated  " in line]
    assert line.startswith(
        "  allocated        12.0 MiB per step in 12 allocations, 12.0 times the peak; …xxx"
    )
    assert line.endswith("xxx/einsum float [512, 512] 12 times")


def test_json_has_the_analyses_under_every_allocator(peakline):
    document = json.loads(peakline("memory", program("leak_list"), "--json").out)
    (allocator,) = document["allocators"]
    tool = json.loads(peakline("tool", "memory_findings", program("leak_list")).out)
    for name in ("growth", "fragmentation", "churn", "savings"):
        entries = allocator[name] if name == "savings" else [allocator[name]]
        assert all(row.pop("sentence") for row in tool[name])
        assert [{"allocator": allocator["allocator"]} | entry for entry in entries] == tool[name]
    first, second = allocator["high_moments"]
    assert first["in_use_bytes"] == allocator["peak_bytes"]
    assert first["time_ps"] == allocator["peak_time_ps"]
    assert first["buffers"] == allocator["peak_buffers"]
    assert (second["steps"], len(second["times_ps"])) == ([19], 1)
    assert sum(b["bytes"] for b in second["buffers"]) == second["in_use_bytes"]
    assert "at" not in document


def test_json_where_nothing_tells_steps_or_addresses(peakline, opened):
    rows = [{"activity": "allocation", "allocation_id": 1, "allocated_bytes": 5}]
    (allocator,) = json.loads(peakline("memory", opened(rows), "--json").out)["allocators"]
    assert (allocator["growth"], allocator["fragmentation"]) == (None, None)
    assert allocator["churn"]["turnover"] is None


# -- at a time -----------------------------------------------------------------------------------


@each_row(
    ("text", "picoseconds"),
    [
        ("12.5ms", 12_500_000_000),
        ("1.2s", 1_200_000_000_000),
        ("827750630000ps", 827_750_630_000),
        ("3us", 3_000_000),
        ("7 NS", 7000),
        ("0s", 0),
        ("0.4ps", 0),
        ("999999999999999s", 2**63 - 1),
    ],
)
def test_times(text, picoseconds):
    assert parse_time(text) == picoseconds


@each_row("text", ["", "5", "ms", "-1ms", "1e3ms", "1.ms", "1٢ms"])
def test_what_is_no_time(text):
    with pytest.raises(UsageError, match=r"is no time; write 12\.5ms"):
        parse_time(text)


ROWS_OF_MEMORY_DETAILS = [
    alloc(1, 3 * MIB_OF_MEMORY_DETAILS, op="a", allocator="gpu", step_id=0, time_ps=10**9),
    alloc(2, MIB_OF_MEMORY_DETAILS, op="b", allocator="gpu", time_ps=2 * 10**9),
    free(1, allocator="gpu", time_ps=3 * 10**9),
    alloc(1, 9, op="c", allocator="cpu", time_ps=4 * 10**9),
]


def test_what_was_live_at_a_time(peakline, opened):
    path = opened(ROWS_OF_MEMORY_DETAILS, STEPS)
    run = peakline("memory", path, "--at", "2.5ms")
    assert (run.code, run.err) == (0, "")
    assert (
        run.out
        == f"""\
{path} (fake, host worker-0, 1.234 ns)

gpu
  in use at 2.500 ms  4.0 MiB (4,194,304 bytes) in 2 buffers
  record before it    at 2.000 ms

  live then
     SIZE  SHARE  COUNT  OP  STEP
  3.0 MiB  75.0%      1  a   0 (train 170)
  1.0 MiB  25.0%      1  b
"""
    )
    out = peakline("memory", path, "--at", "1000000000ps", "--allocator", "gpu").out
    assert "  record before it    at 1.000 ms in step 0 (train 170)\n" in out
    assert "cpu" in peakline("memory", path, "--at", "4ms").out


def test_a_time_before_all_records(peakline, opened):
    path = opened(ROWS_OF_MEMORY_DETAILS, STEPS)
    run = peakline("memory", path, "--at", "0.5ms")
    assert run.code == 0
    assert run.out.splitlines()[2:] == ["no memory is known of at 0.500 ms: records begin later"]
    document = json.loads(peakline("memory", path, "--at", "0.5ms", "--json").out)
    assert document["at"] == {"time_ps": 5 * 10**8, "allocators": []}


def test_a_time_beyond_the_profile_is_a_usage_error(peakline, opened):
    path = opened(ROWS_OF_MEMORY_DETAILS, STEPS)
    assert peakline("memory", path, "--at", "4ms").code == 0
    for words in ((), ("--json",)):
        run = peakline("memory", path, "--at", "4.1ms", *words)
        assert (run.code, run.out) == (2, "")
        assert run.err == (
            "peakline: --at 4.100 ms is not within the profile, which goes from 0 ns to 4.000 ms\n"
        )


def test_one_moment_has_no_other_time(peakline):
    run = peakline("memory", DATA / "oom_report/tf_bfc_oom.log.gz", "--at", "0ms")
    assert (run.code, run.out) == (2, "")
    assert run.err.endswith("tf_bfc_oom.log.gz holds one moment, without a time\n")


def test_json_at_a_time_is_told_besides(peakline):
    words = ("memory", program("leak_list"), "--json")
    whole = json.loads(peakline(*words).out)
    document = json.loads(peakline(*words, "--at", "500ms").out)
    at = document.pop("at")
    assert document == whole
    (one,) = at["allocators"]
    assert one["time_ps"] <= at["time_ps"] == 5 * 10**11
    assert sum(buffer["bytes"] for buffer in one["buffers"]) == one["in_use_bytes"] == 22154752
    peak_time = whole["allocators"][0]["peak_time_ps"]
    at = json.loads(peakline(*words, "--at", f"{peak_time}ps").out)["at"]
    assert at["allocators"][0]["buffers"] == whole["allocators"][0]["peak_buffers"]


def test_at_and_step_together_are_a_usage_error(peakline, opened):
    path = opened(ROWS_OF_MEMORY_DETAILS, STEPS)
    run = peakline("memory", path, "--at", "1ms", "--step", "0")
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert "--at and --step" in run.err
    run = peakline("memory", path, "--at", "soon")
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)


def test_a_profile_without_memory_has_nothing_at_any_time(peakline, sessions):
    run = peakline("memory", sessions / "jax_cpu", "--at", "1ms")
    assert (run.code, run.out.count("\n")) == (0, 1)
    assert run.out.endswith(
        ": no memory events in this profile; JAX records memory on accelerators only; of the heap "
        "on a CPU save jax.profiler.save_device_memory_profile\n"
    )


def test_the_python_face_agrees():
    with peakline.open(program("leak_list")) as profile:
        answer = profile.memory()
    assert [f.kind for f in answer.findings] == ["leak"]
    assert answer.details[0].growth.bytes_per_step == 786432
