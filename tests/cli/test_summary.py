"""``peakline summary`` and ``peakline report``."""

import json
import re
import shlex
import sys

import pytest
from tests.cli.made import MS, made, step
from tests.cli.test_steps import op
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.memory.records import alloc, events, free
from tests.report.document import Document

from peakline.findings.kinds import input_bound

MIB = 2**20
ROWS = [
    alloc(1, 90 * MIB, op="dense/MatMul", allocator="gpu", in_use_bytes=96 * MIB,
          free_bytes=4 * MIB, time_ps=5 * MS),
    free(1, 90 * MIB, allocator="gpu", in_use_bytes=6 * MIB, time_ps=7 * MS),
]  # fmt: skip
STEPS = [step(n, 100 * n, host_compute=60, input_wait=40) for n in range(4)]


@pytest.fixture(name="both")
def _both(monkeypatch, tmp_path):
    tables = {
        "allocator_events": events(ROWS),
        "step_breakdown": STEPS,
        "op_stats": [op("a", "host", 10), op("b", "host", 30)],
    }
    return made(monkeypatch, tmp_path, **tables)


def test_the_screen(peakline, both):
    run = peakline("summary", both)
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[0] == "peak 96.0 MiB, step 100.000 ms; 3 findings"
    assert lines[1] == f"{both} (fake, host worker-0, 1.234 ns)"
    assert [line.split() for line in lines[3:8]] == [
        "memory gpu peak 96.0 MiB at 5.000 ms, 96% of the capacity; 94% of it dense/MatMul".split(),
        "time 4 steps 100.000 ms (median), 100.000 ms to 100.000 ms".split(),
        "where it goes 60% host compute, 40% waiting for input".split(),
        "most self time b 75% of the ops' time on the host".split(),
        ["a", "25%"],
    ]
    assert lines[9:14] == [
        "to fix first",
        "  1. warning (time): 40% of the time training waits for input",
        f"     {input_bound.advice('')}",
        "  2. warning (memory): gpu: the peak takes 96.0% of the capacity",
        "     Reduce what is live at the peak (smaller batch, rematerialisation, lower precision).",
    ]
    assert lines[14].startswith("  3. info (memory): gpu: ")
    assert "the peak: without" in lines[14]


def test_the_json(peakline, both):
    result = json.loads(peakline("summary", both, "--json").out)
    assert list(result) == [
        "profile", "memory", "fits", "programs", "time", "notable", "first", "further_findings",
        "findings", "warnings",
    ]  # fmt: skip
    assert result["findings"] == {"error": 0, "warning": 2, "info": 1}
    assert result["memory"]["allocators"] == [
        {
            "allocator": "gpu",
            "peak_bytes": 96 * MIB,
            "peak_time_ps": 5 * MS,
            "peak_step": None,
            "capacity_bytes": 100 * MIB,
            "untracked_allocations": 0,
        }
    ]
    assert list(result["time"]) == [
        "steps", "times", "times_by_name", "found_by", "parts", "devices",
        "utilisation", "to_record", "top_ops",
    ]  # fmt: skip
    assert result["time"]["steps"] == 4
    assert result["time"]["top_ops"][0] == {
        "side": "host",
        "op": "b",
        "op_type": "MatMul",
        "self_ps": 30 * MS,
        "share": 0.75,
        "is_input": False,
    }
    first = [(one["about"], one["kind"], one["gain_share"]) for one in result["first"]]
    assert first == [
        ("time", "input_bound", 0.4),
        ("memory", "near_capacity", 0.0),
        ("memory", "peak_saving", 0.9),
    ]
    assert result["further_findings"] == 0


def test_only_three_are_told_in_full(monkeypatch, peakline, tmp_path):
    parts = {"compute": 20, "host_to_device": 25, "input_wait": 20, "launch": 20, "idle": 15}
    rows = [step(n, 100 * n, device="/device:GPU:0", **parts) for n in range(3)]
    out = peakline("summary", made(monkeypatch, tmp_path, step_breakdown=rows)).out
    assert [line[2:4] for line in out.splitlines() if line.startswith("  ") and line[3] == "."] == [
        "1.", "2.", "3.",
    ]  # fmt: skip
    assert out.endswith("  and 1 more: peakline steps\n")


def test_of_many_devices_and_allocators_the_first_are_told(monkeypatch, peakline, tmp_path):
    devices = [
        {"plane_id": n, "device": f"/device:GPU:{n}", "start_ps": 0, "end_ps": 10 * MS,
         "busy_ps": (9 - n) * MS}
        for n in range(6)
    ]  # fmt: skip
    buffers = [alloc(n, (9 - n) * MIB, allocator=f"gpu{n}", op="w") for n in range(5)]
    path = made(
        monkeypatch, tmp_path,
        device_time=devices, allocator_events=events(buffers),
    )  # fmt: skip
    assert [line.split() for line in peakline("summary", path).out.splitlines()[3:14]] == [
        "memory gpu0 peak 9.0 MiB at 0 ns; 100% of it w".split(),
        "gpu1 peak 8.0 MiB at 0.001 ns; 100% of it w".split(),
        "gpu2 peak 7.0 MiB at 0.002 ns; 100% of it w".split(),
        "gpu3 peak 6.0 MiB at 0.003 ns; 100% of it w".split(),
        "and 1 more allocator".split(),
        "time devices /device:GPU:0 busy 90% of 10.000 ms".split(),
        "/device:GPU:1 busy 80% of 10.000 ms".split(),
        "/device:GPU:2 busy 70% of 10.000 ms".split(),
        "/device:GPU:3 busy 60% of 10.000 ms".split(),
        "and 2 more devices".split(),
        "steps none are marked".split(),
    ]


def test_a_peak_of_nothing_has_no_largest_buffer(monkeypatch, peakline, tmp_path):
    path = made(monkeypatch, tmp_path, allocator_events=events([alloc(1, 0, allocator="g")]))
    assert "\nmemory  g  peak 0 B at 0 ns\n" in peakline("summary", path).out


def test_a_healthy_profile(monkeypatch, peakline, tmp_path):
    rows = [step(n, 10 * n, host_compute=10) for n in range(3)]
    out = peakline("summary", made(monkeypatch, tmp_path, step_breakdown=rows)).out
    assert out.endswith("\n\nnothing stands out\n")


@each_row(
    ("file", "says"),
    [
        ("pprof/device_memory.pprof.pb.gz", "\nmemory  "),
        ("oom_report/tf_bfc_oom.log.gz", "\nto fix first\n  1. error (memory): "),
        ("memory_log/tf1_control_flow.log.gz", "\nmemory  "),
        ("run_metadata/tf1_cnn_2.pb.gz", "\ntime    1 step"),
        ("chrome_trace/noleak.pt.trace.json.gz", "\ntime    4 steps"),
    ],
)
def test_every_format(peakline, file, says):
    run = peakline("summary", DATA / file)
    assert run.code == 0
    assert says in run.out
    assert json.loads(peakline("summary", DATA / file, "--json").out)["profile"]["path"]


def test_a_message_alone_is_about_memory(peakline, tmp_path):
    path = tmp_path / "train.log"
    path.write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a "
        "total capacity of 14.76 GiB of which 363.75 MiB is free. Process 2 has 14.40 GiB memory "
        "in use. Of the allocated memory 13.99 GiB is allocated by PyTorch, and 276.00 MiB is "
        "reserved by PyTorch but unallocated.\n"
    )
    lines = peakline("summary", path).out.splitlines()
    assert lines[2:4] == ["", "to fix first"]
    assert "at least 148.2 MiB more must be free" in lines[-1]


def test_a_graph_has_neither(peakline):
    run = peakline("summary", DATA / "graph_def" / "frozen.pb")
    assert (run.code, run.err) == (0, "")
    assert run.out.endswith(
        "\n\nneither memory nor time in this profile; see peakline graph for its graph\n"
    )
    result = json.loads(peakline("summary", DATA / "graph_def" / "frozen.pb", "--json").out)
    assert (result["memory"], result["time"], result["first"]) == (None, None, [])


def test_a_peak_that_nothing_tells_is_not_known(peakline):
    out = peakline("summary", DATA / "memory_log" / "tf1_control_flow.log.gz").out
    assert "peak 0 B" not in out
    assert " cpu                        not known: its records have no ids" in out


def test_ops_that_prepare_input_are_told_apart(peakline):
    path = DATA / "programs/time/input_bound.xplane.pb.gz"
    ops = json.loads(peakline("summary", path, "--json").out)["time"]["top_ops"]
    assert [op["is_input"] for op in ops] == [True, True, False]
    assert " PyFunc 29% (input pipeline)\n" in peakline("summary", path).out


def test_memory_that_was_not_recorded_says_how_to(peakline, monkeypatch, tmp_path):
    ops = [op("model/MatMul", "host", 999), op("model/Add", "host", 1)]
    types = [{"type_id": 0, "plane_id": 0, "name": "ExecutorState::Process"}]
    tables = {"step_breakdown": STEPS, "op_stats": ops, "event_types": types}
    out = peakline("summary", made(monkeypatch, tmp_path, **tables)).out
    assert re.search(r"\nmemory +events +none are recorded\n +to record +TensorFlow records ", out)
    # An op of less than half a per cent is not one of those that take most.
    assert "model/MatMul 100% of the ops' time" in out
    assert "model/Add" not in out


def test_a_failure_alone_is_not_said_to_lack_memory(peakline, tmp_path):
    log = tmp_path / "err.log"
    log.write_text("jax.errors.JaxRuntimeError: Out of memory allocating 17592186044416 bytes.\n")
    out = peakline("summary", log).out
    assert "16.0 TiB requested" in out
    assert "neither memory nor time" not in out


def test_the_report_is_written_once_and_replaced_only_when_told(peakline, opened, tmp_path):
    path, page = opened([alloc(1, 100, op="a/b")]), tmp_path / "page.html"
    run = peakline("report", path, "-o", page)
    assert (run.code, run.out, run.err) == (0, "", "")
    first = page.read_bytes()
    document = Document(first)
    assert document.texts("h1") == ["fake.pb"]
    command = dict(document.table("Where the numbers come from")[1:])["Command"]
    assert command == shlex.join(["peakline", "report", str(path), "-o", str(page)])
    run = peakline("report", path, "-o", page, "--title", "Another one")
    assert (run.code, run.out) == (2, "")
    assert run.err == f"peakline: {page}: exists; use --force to replace it\n"
    assert page.read_bytes() == first
    assert peakline("report", path, "-o", page, "--title", "Another one", "--force").code == 0
    document = Document(page.read_bytes())
    assert document.texts("h1") == ["Another one"]
    assert "--title 'Another one'" in document.text


def test_a_dash_is_standard_output(opened, capfdbinary):
    from peakline.__main__ import main

    assert main(["report", str(opened([alloc(1, 100)])), "-o", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert Document(out).texts("h1") == ["fake.pb"]
    assert err == b""


def test_a_file_must_be_named(peakline, opened):
    run = peakline("report", opened([alloc(1, 100)]))
    assert (run.code, run.out) == (2, "")
    assert "--output" in run.err


def test_the_profile_itself_is_never_replaced(peakline, opened):
    path = opened([alloc(1, 100)])
    run = peakline("report", path, "-o", path, "--force")
    assert run.code == 2
    assert "is the profile itself" in run.err
    assert path.read_bytes() == b"x"


def test_a_profile_without_memory_gives_a_report_that_says_so(peakline, opened, tmp_path):
    path, page = opened([]), tmp_path / "page.html"
    run = peakline("report", path, "-o", page)
    assert (run.code, run.out) == (0, "")
    assert run.err == f"peakline: {path}: no memory events in this profile\n"
    assert "nothing about memory" in Document(page.read_bytes()).text


def test_one_allocator(peakline, opened, tmp_path):
    path = opened([alloc(1, 100, allocator="one"), alloc(2, 100, allocator="two")])
    page = tmp_path / "page.html"
    assert peakline("report", path, "-o", page, "--allocator", "two").code == 0
    assert "Allocator two" in Document(page.read_bytes()).text
    run = peakline("report", path, "-o", tmp_path / "other.html", "--allocator", "three")
    assert run.code == 3
    assert run.err.count("\n") == 1
    assert not (tmp_path / "other.html").exists()


@each_row("options", [["--strict"]])
def test_what_was_lost_is_an_error_when_strict_and_leaves_no_file(
    peakline, opened, tmp_path, options
):
    path = opened([alloc(None, 1)])
    page = tmp_path / "page.html"
    assert peakline("report", path, "-o", page, *options).code == 3
    assert not page.exists()
    assert "[untracked_allocation]" in peakline("report", path, "-o", page).err


def test_importing_the_package_loads_nothing_heavy():
    import subprocess

    code = "import sys, peakline.report; print('plotly' in sys.modules, 'numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"


def test_a_printed_table_is_not_judged_and_says_what_to_record(peakline):
    run = peakline("summary", DATA / "op_table" / "torch_cuda.txt")
    assert run.code == 0
    assert "cuda kernels, printed" in run.out
    assert "export_chrome_trace" in run.out
    assert "not judged" in run.out
    assert "nothing stands out" not in run.out
