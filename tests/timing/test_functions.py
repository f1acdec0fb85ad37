"""The time of a program's own functions, against plain readers of the same files."""

from collections import defaultdict
from pathlib import Path

from tests.each_row import each_row
from tests.formats.chrome_traces import opened
from tests.memory import torch_jobs
from tests.reference.functions import times
from tests.reference.xspace_steps import host_events, read
from tests.timing.traces import HOST_PLANE, profile_of

import peakline
from peakline.document.ops import by_function_tables, ops_document, ops_rows
from peakline.schema import HloProto
from peakline.timing.ops.functions import function_times

DATA = Path(__file__).parents[1] / "data"
US = 10**6


def spent(rows, side="host"):
    """Of each function (with its line) its calls, inclusive and self time in us."""
    return {
        (row.function, row.line): (row.occurrences, row.total_ps / US, row.self_ps / US)
        for row in rows
        if row.side == side
    }


@each_row(
    ("path", "own_files"),
    [
        ("chrome_trace/noleak.pt.trace.json.gz", r"^gen_h_torch\.py$"),
        ("diagnosis/torch_audio_clips/faulty/commands.trace.json.gz", r"^train\.py$"),
        ("diagnosis/torch_actor_queue/faulty/ppo.trace.json.gz", r"^train\.py$"),
        ("diagnosis/torch_chord_positions/faulty/chords.trace.json.gz", r"^train\.py$"),
    ],
)
def test_functions_of_pytorch_as_a_plain_reader_has_them(path, own_files):
    with peakline.open(DATA / path) as profile:
        rows = [row for row in function_times(profile) if row.file]
    own = {(row.function, row.file, row.line): row for row in rows}
    expected = times(DATA / path, own_files)
    assert len(expected) > 2
    assert {
        key: (row.occurrences, row.total_ps, row.self_ps) for key, row in own.items()
    } == expected


def test_functions_that_programs_were_traced_from_as_a_plain_reader_has_them():
    (path,) = (DATA / "sessions/jax_cpu").glob("**/*.xplane.pb*")
    space = read(path)
    (programs,) = (plane for plane in space.planes if plane.name == "/host:metadata")
    names = {key: metadata.name for key, metadata in programs.stat_metadata.items()}
    modules = {}
    for metadata in programs.event_metadata.values():
        stats = {names[stat.metadata_id]: stat for stat in metadata.stats}
        program = HloProto.FromString(stats["Hlo Proto"].bytes_value)
        modules[stats["program_id"].uint64_value] = program.hlo_module
    ops = [one for one in host_events(space) if "hlo_op" in one.stats]
    expected, stacks = defaultdict(int), defaultdict(list)
    for op in ops:
        around = stacks[op.thread]
        while around and around[-1][0].end_ps < op.end_ps:
            around.pop()
        name = _traced_from(modules[op.stats["program_id"]], op.stats["hlo_op"])
        expected[name] += op.end_ps - op.start_ps
        if around:
            expected[around[-1][1]] -= op.end_ps - op.start_ps
        around.append((op, name))
    with peakline.open(path) as profile:
        rows = {row.function: row.self_ps for row in function_times(profile)}
    for name in ("mlp", "loss", "sharded", "attn_scan.<locals>.f"):
        assert rows[name] == expected[name] > 0, name


def _traced_from(module, name):
    """The innermost function of the program's file in the stack of an instruction."""
    instructions = [one for part in module.computations for one in part.instructions]
    (made,) = (one for one in instructions if one.name == name)
    index, number = module.stack_frame_index, made.metadata.stack_frame_id
    while number:
        frame = index.stack_frames[number - 1]
        place = index.file_locations[frame.file_location_id - 1]
        function = index.function_names[place.function_name_id - 1]
        file = index.file_names[place.file_name_id - 1]
        if file.endswith("gen_f_jax.py") and not function.endswith(">"):
            return function
        number = frame.parent_frame_id
    return ""


def test_recursion_names_and_what_libraries_do(tmp_path):
    trace = torch_jobs.Trace()
    python = torch_jobs.PYTHON
    trace.run("app/train.py(1): <module>", 0, 100, python)
    trace.run("app/train.py(10): walk", 10, 60, python)
    trace.run("app/train.py(10): walk", 20, 50, python)
    trace.run("app/train.py(12): <listcomp>", 22, 40, python)
    trace.run("json/decoder.py(332): decode", 25, 39, python)
    # Two functions of one name, in one file and in another.
    trace.run("app/model.py(5): forward", 60, 70, python)
    trace.run("app/model.py(50): forward", 70, 75, python)
    trace.run("app/other/model.py(5): forward", 75, 76, python)
    trace.run("app/other/__init__.py(3): make", 80, 82, python)
    rows = function_times(opened(tmp_path, {"traceEvents": trace.events}))
    assert {(row.function, row.file, row.line, row.occurrences, row.total_ps, row.self_ps)
            for row in rows} == {
        ("<module>", "app/train.py", 1, 1, 100 * US, 32 * US),
        ("make", "app/other/__init__.py", 3, 1, 2 * US, 2 * US),
        ("walk", "app/train.py", 10, 2, 50 * US, 50 * US),
        ("forward", "app/model.py", 5, 1, 10 * US, 10 * US),
        ("forward", "app/model.py", 50, 1, 5 * US, 5 * US),
        ("forward", "app/other/model.py", 5, 1, US, US),
    }  # fmt: skip
    (table,) = by_function_tables([vars(row) for row in rows], 9).values()
    assert [row[-1] for row in table.rows] == [
        "walk (train.py:10)", "<module> (train.py:1)", "forward (app/model.py:5)",
        "forward (app/model.py:50)", "make (other/__init__.py:3)", "forward (app/other/model.py:5)",
    ]  # fmt: skip


def kernel(number, begin, end):
    return {
        "ph": "X", "pid": 0, "tid": 7, "ts": begin, "dur": end - begin, "name": f"k{number}",
        "cat": "kernel", "args": {"correlation": number, "device": 0, "stream": 7},
    }  # fmt: skip


def test_kernels_and_gradients_are_of_the_functions_that_caused_them(tmp_path):
    trace = torch_jobs.Trace()
    python, launch = torch_jobs.PYTHON, "cuda_runtime"
    trace.run("train.py(1): step", 0, 100, python)
    trace.run("train.py(9): loss_of", 5, 20, python)
    trace.run("aten::mm", 6, 12, **{"Sequence number": 3})
    trace.run("cudaLaunchKernel", 7, 8, launch, correlation=1)
    # A kernel of the program's own, which no op launches.
    trace.run("cudaLaunchKernel", 14, 15, launch, correlation=2)
    # The thread of the backward pass has no frames, but for a gradient that Python computes.
    before = len(trace.events)
    node = "autograd::engine::evaluate_function: "
    trace.run(f"{node}MmBackward0", 40, 50, **{"Sequence number": 3})
    trace.run("cudaLaunchKernel", 41, 42, launch, correlation=3)
    trace.run(f"{node}ScaleBackward", 60, 80, **{"Sequence number": 3})
    trace.run("train.py(30): backward", 62, 70, python)
    trace.run("aten::mul", 63, 66)
    trace.run(f"{node}torch::autograd::AccumulateGrad", 80, 83)
    for event in trace.events[before:]:
        event["tid"] = 2
    trace.events += [kernel(1, 8, 10), kernel(2, 15, 19), kernel(3, 42, 50), kernel(9, 90, 91)]
    rows = function_times(opened(tmp_path, {"traceEvents": trace.events}))
    assert spent(rows, "device") == {
        ("loss_of", 9): (3, 14, 14), ("step", 1): (0, 14, 0), ("", 0): (1, 1, 1),
    }  # fmt: skip
    assert spent(rows) == {
        # The step waits for the other thread; the loss does not, it has long returned.
        ("step", 1): (1, 100, 85), ("loss_of", 9): (1, 37, 37), ("backward", 30): (1, 8, 8),
        ("", 0): (1, 3, 3),
    }  # fmt: skip


def test_a_tracer_s_threads_and_their_executors():
    profile = profile_of({
        HOST_PLANE: {
            "python": [
                ("$train.py:3 fit", 0, 100 * US), ("$train.py:9 batch", 10 * US, 30 * US),
                ("$array.py:1 asarray", 12 * US, 20 * US), ("PjitFunction(f)", 40 * US, 90 * US),
            ],
        },
    })  # fmt: skip
    assert spent(function_times(profile)) == {("fit", 3): (1, 100, 80), ("batch", 9): (1, 20, 20)}


@each_row(
    ("events", "says"),
    [
        ([("aten::mm", 0, 5)], "with_stack=True"),
        ([("PjitFunction(f)", 0, 5)], "python_tracer_level=1"),
        ([("EagerExecute: MatMul", 0, 5)], "tf.profiler.experimental.ProfilerOptions"),
        ([("work", 0, 5)], "records no functions of Python"),
        ([("aten::mm", 0, 5), ("torch/nn/modules/module.py(9): _call_impl", 0, 6)], "libraries"),
    ],
)
def test_where_no_function_is_recorded_it_says_how_to(events, says):
    kind = "chrome_trace" if "aten" in events[0][0] else "xplane"
    profile = profile_of({HOST_PLANE: {"python": events}}, kind=kind)
    document = ops_document(profile, by="function")
    assert document["functions"] == []
    (line,) = document["to_record"]
    assert says in line


def test_it_is_a_table_of_sql(tmp_path):
    profile = opened(tmp_path, {"traceEvents": torch_jobs.training(1)})
    rows = ops_rows(profile, "function")
    table = profile.table("function_time").to_pylist()
    assert [{**row, "function": row["function"] or "", "file": row["file"] or ""}
            for row in table] == rows  # fmt: skip
    assert {row["function"] for row in rows} == {"train", "forward"}
