"""What a step of an XSpace is: by what the program marked, whatever the runtime groups."""

from reference.xspace_builder import SpaceBuilder


def steps(profile):
    """Name, start, end and how each step was found, in order of ids."""
    return [
        (row["name"], row["start_ps"], row["end_ps"], row["found_by"])
        for row in profile.columns("steps").to_pylist()
    ]


def of_events(profile):
    """The step of every event, in file order."""
    return [row["step_id"] for row in profile.columns("events").to_pylist()]


def executors(line, first, loops):
    """A function's run whose executor goes round a loop."""
    line.event("FunctionRun", first, 5, {"_r": 1, "id": first})
    for turn in range(loops):
        at = first + 10 + 10 * turn
        line.event("ExecutorState::Process", at, 8, {"id": first, "iter_num": turn})
        line.event("op:MatMul", at + 1, 5)


def test_a_loop_within_a_model_makes_no_steps(opened):
    builder = SpaceBuilder()
    line = builder.host().line("t", 0)
    for number in range(2):
        line.event("train", 100 * number, 90, {"_r": 1, "step_num": 7 + number})
        executors(line, 100 * number + 5, 3)
    profile = opened(builder)
    assert steps(profile) == [("train 7", 0, 90, "mark"), ("train 8", 100, 190, "mark")]
    assert of_events(profile) == [0] * 8 + [1] * 8
    grouped = profile.with_runtime_steps()
    assert grouped.columns("steps").rows == 6
    assert of_events(grouped)[3] == 0 != of_events(grouped)[5]


def test_a_step_number_makes_a_step_without_a_root_mark(opened):
    """Keras' callback marks so; the step is as long as its mark, not as the run in it."""
    builder = SpaceBuilder()
    line = builder.host().line("t", 0)
    for number in range(2):
        line.event("Profiled batch", 100 * number, 90, {"step_num": number})
        line.event("FunctionRun", 100 * number + 10, 5, {"_r": 1, "id": number})
    profile = opened(builder)
    assert steps(profile) == [
        ("Profiled batch 0", 0, 90, "mark"),
        ("Profiled batch 1", 100, 190, "mark"),
    ]
    assert of_events(profile) == [0, 0, 1, 1]
    assert steps(profile.with_runtime_steps()) == [
        ("0", 10, 15, "function"),
        ("1", 110, 115, "function"),
    ]


def test_runs_of_functions_are_no_steps_beside_marked_ones(opened):
    builder = SpaceBuilder()
    line = builder.host().line("t", 0)
    line.event("FunctionRun", 0, 5, {"_r": 1, "id": 1})
    line.event("train", 100, 50, {"_r": 1, "step_num": 3})
    line.event("FunctionRun", 110, 5, {"_r": 1, "id": 2})
    line.event("FunctionRun", 200, 5, {"_r": 1, "id": 3})
    profile = opened(builder)
    assert steps(profile) == [("train 3", 100, 150, "mark")]
    assert of_events(profile) == [None, 0, 0, None]
    assert of_events(profile.with_runtime_steps()) == [0, 1, 1, 2]


def test_runs_of_functions_are_inferred_steps_where_nothing_is_marked(opened):
    builder = SpaceBuilder()
    line = builder.host().line("t", 0)
    line.event("FunctionRun", 0, 5, {"_r": 1, "id": 1})
    line.event("FunctionRun", 10, 5, {"_r": 1, "id": 2})
    profile = opened(builder)
    assert steps(profile) == [("0", 0, 5, "function"), ("1", 10, 15, "function")]
    assert profile.with_runtime_steps() is profile


def test_a_capture_with_loop_ops_has_steps(opened):
    builder = SpaceBuilder()
    line = builder.host().line("t", 0)
    line.event("train", 0, 50, {"_r": 1, "step_num": 1})
    line.event("WhileOp-StartBody", 10, 5)
    profile = opened(builder)
    assert steps(profile) == [("train 1", 0, 50, "mark")]
    assert profile.with_runtime_steps().columns("steps").rows == 0


def test_a_file_that_says_groups_itself_has_the_steps_of_its_step_line(opened):
    builder = SpaceBuilder()
    host = builder.host().line("t", 0)
    host.event("FunctionRun", 0, 5, {"group_id": 0})
    host.event("FunctionRun", 60, 5, {"group_id": 3})
    gpu = builder.plane("/device:GPU:0")
    gpu.line("Stream #1", 0).event("kernel", 10, 5, {"group_id": 0})
    gpu.line("Steps", 0).event("12", 10, 40, {"group_id": 0})
    profile = opened(builder)
    assert steps(profile) == [("12", 10, 50, "device")]
    assert of_events(profile) == [0, None, 0, 0]
    grouped = profile.with_runtime_steps()
    assert grouped.columns("steps").rows == 0
    assert of_events(grouped) == [0, 3, 0, 0]


def test_a_file_that_says_groups_itself_has_the_runs_of_functions_as_steps(opened):
    builder = SpaceBuilder()
    host = builder.host().line("t", 0)
    host.event("FunctionRun", 0, 5, {"group_id": 0})
    host.event("MatMul:MatMul", 1, 2, {"group_id": 0})
    host.event("FunctionRun", 60, 5, {"group_id": 3})
    assert steps(opened(builder)) == [("0", 0, 5, "function"), ("3", 60, 65, "function")]


def test_runs_of_one_program_on_all_cores_are_one_step(opened):
    """A core may run programs that the others do not: then they stay in step."""
    builder = SpaceBuilder()
    builder.host()
    for core, programs in enumerate([("jit_init(7)", "jit_f(9)", "jit_f(9)"), ("jit_f(9)",) * 2]):
        line = builder.plane(f"/device:TPU:{core}").line("XLA Modules", 0)
        first = 3 - len(programs)
        for number, program in enumerate(programs, first):
            line.event(program, 100 * number + core, 50)
    profile = opened(builder)
    assert steps(profile) == [
        ("jit_init 0", 0, 50, "function"),
        ("jit_f 0", 100, 150, "function"),
        ("jit_f 1", 200, 250, "function"),
    ]
    assert of_events(profile) == [0, 1, 2, 1, 2]
    assert of_events(profile.with_runtime_steps()) == [0, 1, 2, 0, 1]


def test_the_step_lines_of_cores_are_in_lock_step(opened):
    builder = SpaceBuilder()
    builder.host()
    for core in range(2):
        line = builder.plane(f"/device:TPU:{core}").line("Steps", 0)
        for number in range(2):
            line.event(str(17 + number), 100 * number + core, 50)
    profile = opened(builder)
    assert [(name, how) for name, _, _, how in steps(profile)] == [("0", "device"), ("1", "device")]
    assert of_events(profile) == [0, 1, 0, 1]
    assert profile.with_runtime_steps() is profile


def test_annotations_without_a_number_are_steps_where_nothing_else_is(opened):
    """What lies around JAX's calls, in frames of Python at most, once a turn of the loop."""
    builder = SpaceBuilder()
    line = builder.host().line("python", 0)
    line.event("$loop.py:3 main", 0, 500)
    for turn in range(3):
        at = 100 * turn + 10
        line.event("train_step", at, 80)
        line.event("forward", at + 5, 20)
        line.event("PjitFunction(f)", at + 10, 10, {"correlation_id": turn + 1})
    line.event("save checkpoint", 400, 20)
    line.event("PjitFunction(g)", 405, 10)
    gpu = builder.plane("/device:GPU:0").line("Stream #1", 0)
    for turn in range(3):
        gpu.event("kernel", 100 * turn + 95, 20, {"correlation_id": turn + 1})
    profile = opened(builder)
    assert steps(profile) == [
        (f"train_step {turn}", 100 * turn + 10, 100 * turn + 90, "annotation") for turn in range(3)
    ]
    assert of_events(profile) == [None, *[0] * 3, *[1] * 3, *[2] * 3, None, None, 0, 1, 2]
    assert profile.with_runtime_steps().columns("steps").rows == 0


def test_inferred_steps_are_called_by_their_function(opened):
    builder = SpaceBuilder()
    line = builder.host().line("t", 0)
    for number, function in enumerate(("train", "evaluate", "train")):
        at = 100 * number
        line.event(f"EagerLocalExecute: __inference_{function}_4{number}", at, 50)
        line.event("FunctionRun", at + 10, 5, {"_r": 1, "id": number})
    profile = opened(builder)
    assert [name for name, *_ in steps(profile)] == ["train 0", "evaluate 0", "train 1"]
    assert [name for name, *_ in steps(profile.with_runtime_steps())] == ["0", "1", "2"]


def test_a_group_that_only_stands_in_the_file_is_no_step(opened):
    """One plane knows no groups, so that all are found again, and what is not reached stays."""
    builder = SpaceBuilder()
    builder.host().line("t", 0).event("train", 0, 50, {"_r": 1, "step_num": 7})
    builder.plane("/device:GPU:0").line("Stream #1", 0).event("kernel", 60, 5, {"group_id": 4})
    profile = opened(builder)
    assert steps(profile) == [("train 7", 0, 50, "mark")]
    assert of_events(profile) == [0, None]
    grouped = profile.with_runtime_steps()
    assert steps(grouped) == steps(profile)
    assert of_events(grouped) == [0, 4]
