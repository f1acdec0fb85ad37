"""What the verbs say of the traces of PyTorch's profiler."""

import json

import pytest
from tests.each_row import each_row
from tests.memory import torch_jobs

WITH_STACK = "record with with_stack=True to see "


@pytest.fixture(name="write")
def _write(tmp_path):
    def write(events, name="trace.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"traceEvents": events}))
        return str(path)

    return write


def test_memory_says_what_buffers_are_for(peakline, write):
    run = peakline("memory", write(torch_jobs.training()))
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    at = lines.index("  by category")
    assert lines[at + 1].split() == ["SIZE", "SHARE", "CATEGORY"]
    assert lines[at + 2].split() == ["1004", "B", "24.4%", "activation"]
    at = lines.index("  live at the peak")
    heads = "SIZE SHARE COUNT OP CATEGORY MODULE LINE INPUT SHAPE STEP"
    assert " ".join(lines[at + 1].split()) == heads
    (output,) = [line for line in lines if "[8, 4]" in line]
    shown = "aten::addmm activation Linear_0 forward (model.py:3) [8, 4]"
    assert shown in " ".join(output.split())


@each_row(
    ("width", "heads"),
    [
        (200, "SIZE SHARE COUNT OP CATEGORY MODULE LINE INPUT SHAPE STEP"),
        (105, "SIZE SHARE COUNT OP CATEGORY MODULE LINE"),
        (80, "SIZE SHARE OP CATEGORY MODULE OR LINE"),
    ],
)
def test_rows_fit_the_terminal(peakline, write, terminal, width, heads):
    terminal(width)
    events = torch_jobs.training()
    for one in events:
        one["name"] = one["name"].replace("aten::addmm", f"aten::{'long_' * 20}addmm")
    lines = peakline("memory", write(events)).out.splitlines()
    at = lines.index("  live at the peak")
    assert " ".join(lines[at + 1].split()) == heads
    assert max(map(len, lines[at + 1 : at + 8])) <= width


@each_row(
    ("group", "first"),
    [
        ("category", {"key": "activation", "bytes": 1004}),
        ("module", {"key": "Linear_0"}),
        ("function", {"key": "forward (model.py:3)"}),
        ("input_shape", {"key": "[8, 4]"}),
    ],
)
def test_live_memory_by_what_buffers_are_for(peakline, write, group, first):
    question = ("tool", "live_memory", write(torch_jobs.training()), "-p")
    whole = json.loads(peakline(*question, f"group={group}").out)
    assert whole["is_described"]
    assert sum(row["bytes"] for row in whole["rows"]) == whole["bytes_in_use"]
    (row,) = [row for row in whole["rows"] if row["key"] == first["key"]]
    assert row.items() >= first.items()
    only = json.loads(peakline(*question, f"{group}={row['key']}").out)
    assert only["rows_bytes"] == row["bytes"]
    assert {one[group] for one in only["rows"]} == {row["key"]}
    result = json.loads(peakline(*question, f"search={row['key'].upper()}").out)
    assert result["rows_bytes"] >= row["bytes"]


def test_memory_in_json(peakline, write):
    (one,) = json.loads(peakline("memory", write(torch_jobs.training()), "--json").out)[
        "allocators"
    ]
    assert sum(row["bytes"] for row in one["peak_buffers"]) == one["peak_bytes"]
    assert sum(row["bytes"] for row in one["categories"]) == one["peak_bytes"]
    assert one["categories"][0] == {"category": "activation", "bytes": 1004, "share": 0.243926}
    (output,) = [row for row in one["peak_buffers"] if row["op"] == "aten::addmm"]
    assert {name: output[name] for name in ("category", "module", "function", "input_shape")} == {
        "category": "activation", "module": "Linear_0", "function": "forward (model.py:3)",
        "input_shape": "[8, 4]",
    }  # fmt: skip


def test_report_and_diff_have_them_too(peakline, write, tmp_path):
    before, after = write(torch_jobs.training(), "a.json"), write(torch_jobs.training(), "b.json")
    page = tmp_path / "report.html"
    assert peakline("report", before, "-o", str(page)).code == 0
    text = page.read_text()
    assert "By category" in text
    assert "Linear_0" in text
    smaller = [one for one in torch_jobs.training() if one["name"] != "nothing"]
    for one in smaller:
        args = one["args"]
        if one["name"] == "[memory]" and abs(args["Bytes"]) == 1000:
            args["Total Allocated"] += 24 if args["Bytes"] > 0 else 0
            args["Bytes"] += 24 if args["Bytes"] > 0 else -24
    after = write(smaller, "b.json")
    (one,) = json.loads(peakline("diff", before, after, "--json").out)["allocators"]
    rows = {row["op"]: row for row in one["groups"]}
    assert rows["aten::addmm"]["delta_bytes"] == 24
    assert (rows["aten::addmm"]["category"], rows["aten::addmm"]["module"]) == (
        "activation", "Linear_0",
    )  # fmt: skip


def test_ops_by_module_and_shape(peakline, write):
    path = write(torch_jobs.training(1))
    run = peakline("ops", path, "--by", "module")
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines()[0] == "57.1% of the host's self time: Linear_0"
    assert run.out.splitlines()[3:] == [
        "host by module: 28.000 us of self time, summed over threads",
        "  SELF TIME  SHARE      TOTAL  RUNS  MODULE",
        "  16.000 us  57.1%  16.000 us     4  Linear_0",
        "  12.000 us  42.9%  12.000 us     6  (no module)",
        "       0 ns   0.0%  16.000 us     0  Net_0",
    ]
    run = peakline("ops", path, "--by", "function")
    assert run.out.splitlines()[0] == "70.2% of the host's self time: train (train.py:10)"
    assert run.out.splitlines()[3:] == [
        "host by function: 97.000 us of self time, summed over threads",
        "  SELF TIME  SHARE      TOTAL  RUNS  FUNCTION",
        "  68.100 us  70.2%  97.000 us     1  train (train.py:10)",
        "  28.900 us  29.8%  28.900 us     1  forward (model.py:3)",
    ]
    run = peakline("ops", path, "--by", "shape", "--top", "1", "--sort", "median")
    assert "  and 9 more rows" in run.out.splitlines()
    answer = json.loads(peakline("ops", path, "--by", "module", "--top", "1", "--json").out)
    assert answer["modules"] == [
        {"side": "host", "module": "Linear_0", "occurrences": 4, "total_ps": 16 * 10**6,
         "self_ps": 16 * 10**6},
    ]  # fmt: skip
    rows = json.loads(peakline("ops", path, "--by", "shape", "--json").out)["ops"]
    assert {row["input_shape"] for row in rows} == {"", "[2], [8, 4], [4, 2]"}


@each_row(
    ("options", "says"),
    [
        (["--by", "module", "--kernels"], "give one of them"),
        (["--by", "module", "--sort", "median"], "sort by self, total or count"),
    ],
)
def test_options_that_exclude_one_another(peakline, write, options, says):
    run = peakline("ops", write(torch_jobs.training(1)), *options)
    assert (run.code, run.out) == (2, "")
    assert says in run.err


def test_what_else_to_record(peakline, write):
    path = write(torch_jobs.training(stacks=False, shapes=False))
    lines = peakline("memory", path).out.splitlines()
    assert lines[-1].endswith(f"; {WITH_STACK}which module and line allocated a buffer")
    assert lines[-1].startswith("what was allocated on the CPU before the recording is not counted")
    assert json.loads(peakline("memory", path, "--json").out)["to_record"] == lines[-1:]
    out = peakline("ops", path).out
    assert json.loads(peakline("ops", path, "--json").out)["to_record"] == [
        "record with record_shapes=True to see which shapes an op ran on",
        f"{WITH_STACK}which module ran an op (with_modules=True does so for TorchScript only)",
    ]
    assert out.count("record with record_shapes=True to see which shapes an op ran on") == 1
    assert out.count(f"{WITH_STACK}which module ran an op") == 1
    assert "no modules of ops in this profile" in peakline("ops", path, "--by", "module").out
    assert peakline("steps", path).out.count("with_stack=True") == 1
    path = write(torch_jobs.training(stacks=False, marks=False))
    out = peakline("steps", path).out
    assert out.count("schedule=") == 1
    assert out.count("with_stack=True") == 1
    path = write(torch_jobs.training())
    for verb in ("memory", "ops"):
        assert "record with" not in peakline(verb, path).out
