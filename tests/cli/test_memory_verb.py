import gzip
import json
import pickle
import re

from tests.analysis.records import alloc, free
from tests.each_row import each_row

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
    told = [warning for warning in warnings if warning["kind"] != "no_memory_events"]
    assert {warning["kind"] for warning in told} == {"truncated", "names_lost"}
    assert run.err.count("peakline: warning: ") == len(told)
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
    assert run.code == 2
    assert "localhost_47507, localhost_56665" in run.err
    run = peakline("memory", sessions / "tf2_multihost", "--host", host, "--json")
    assert json.loads(run.out)["profile"]["path"].endswith(f"{host.replace(':', '_')}.xplane.pb")


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
        {"size": size * MIB, "requested_size": asked * MIB, "state": state, "frames": []}
        for size, asked, state in sizes
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
    found = peakline(
        "sql", path, "select step_id from steps where name = 'run 20'", "--format", "csv"
    )
    assert found.out.split() == ["step_id", "-4590066616686678053"]


def test_a_lifetime_peak_below_the_peak_says_why(peakline, opened):
    row = alloc(1, 3, op="a", in_use_bytes=3, reserved_bytes=90, peak_bytes=5)
    told = "lifetime peak    5 B as the allocator reported for its heap, without the 90 B reserved"
    assert told in peakline("memory", opened([row])).out
    row = alloc(1, 3, op="a", in_use_bytes=3, reserved_bytes=1, peak_bytes=5)
    assert (
        "lifetime peak    5 B as the allocator reported\n" in peakline("memory", opened([row])).out
    )
