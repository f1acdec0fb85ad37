"""Grouping: which events are roots, in which order, how groups spread and what they are called."""

from reference.case import Registry, allocate
from reference.xspace_builder import Ref, SpaceBuilder, Uint

ROOT_CASES = Registry()


@ROOT_CASES.add("grouping: roots")
def trace_context_is_a_root(space: SpaceBuilder) -> None:
    """TraceContext is a root of level 1 by name, or of its own level."""
    line = space.host().line()
    for begin, stats in ((0, {}), (1000, {"_r": 2}), (2000, {"step_num": 5}), (3000, {"_r": 0})):
        line.event("TraceContext", begin, 100, stats)
        allocate(line, begin + 50, begin)


@ROOT_CASES.add("grouping: roots")
def root_level_kinds(space: SpaceBuilder) -> None:
    """Any stat _r makes a root; a level of another kind than int64 is 0."""
    line = space.host().line()
    for number, value in enumerate((1, 0, -1, Uint(3), 1.0, "1", None, 2**32 + 1, 2)):
        line.event("train", number * 1000, 100, {"_r": value})
        allocate(line, number * 1000 + 50, number)


@ROOT_CASES.add("grouping: roots")
def higher_levels_come_first(space: SpaceBuilder) -> None:
    """Levels descend, then times ascend: a late root of level 2 is group 0."""
    line = space.host().line()
    for begin, level in ((0, 1), (1000, 2), (2000, 1), (3000, 2), (4000, 3)):
        line.event("train", begin, 100, {"_r": level})
        allocate(line, begin + 50, begin)


@ROOT_CASES.add("grouping: roots")
def same_level_inside_is_no_root(space: SpaceBuilder) -> None:
    """A root inside one of its level opens no group; inside a higher level it is taken first."""
    line = space.host().line()
    line.event("train", 0, 1000, {"_r": 1})
    line.event("inner", 100, 100, {"_r": 1})
    allocate(line, 150, 1)
    line.event("train", 2000, 1000, {"_r": 1})
    line.event("inner", 2100, 100, {"_r": 2})
    allocate(line, 2150, 2)
    line.event("train", 4000, 1000, {"_r": 2})
    line.event("inner", 4100, 100, {"_r": 1})
    allocate(line, 4150, 3)


@ROOT_CASES.add("grouping: roots")
def ancestor_through_a_context(space: SpaceBuilder) -> None:
    """An ancestor of the same level counts through any edge, also across threads."""
    host = space.host()
    host.line().event("train", 1000, 100, {"_r": 1, "_pt": 2, "_p": 1})
    line = host.line()
    line.event("FunctionRun", 0, 500, {"_ct": 2, "_c": 1})
    line.event("inner", 100, 100, {"_r": 1})
    allocate(line, 150, 1)


@ROOT_CASES.add("grouping: roots")
def roots_in_a_circle(space: SpaceBuilder) -> None:
    """Two roots that are each other's parent open no group at all."""
    host = space.host()
    for begin, produced, consumed in ((0, 1, 2), (1000, 2, 1)):
        line = host.line()
        stats = {"_r": 1, "_pt": 2, "_p": produced, "_ct": 2, "_c": consumed}
        line.event("train", begin, 100, stats)
        allocate(line, begin + 50, begin)


@ROOT_CASES.add("grouping: tf.data")
def tf_data_functions_are_no_roots(space: SpaceBuilder) -> None:
    """Ids of captured functions exclude roots and executor events with the same id."""
    line = space.host().line()
    names = ("Run", "RunWithBorrowedArgs", "RunInstantiated", "RunAsync", "RunOther")
    for number, name in enumerate(names):
        line.event(f"InstantiatedCapturedFunction::{name}", number * 100, 50, {"id": number + 1})
        line.event("FunctionRun", number * 100 + 10, 20, {"_r": 1, "id": number + 1})
        allocate(line, number * 100 + 20, number)
    line.event("train", 1000, 100, {"_r": 1})
    allocate(line, 1050, 9)


@ROOT_CASES.add("grouping: tf.data")
def tf_data_id_of_another_kind_is_zero(space: SpaceBuilder) -> None:
    """A uint64 id reads 0 and excludes what has id 0, or an id that reads 0."""
    line = space.host().line()
    line.event("InstantiatedCapturedFunction::Run", 0, 50, {"id": Uint(4)})
    for begin, value in ((100, 4), (300, 0), (500, Uint(9)), (700, "4")):
        line.event("FunctionRun", begin, 100, {"_r": 1, "id": value})
        allocate(line, begin + 50, begin)


@ROOT_CASES.add("grouping: loops")
def loop_iterations_are_the_roots(space: SpaceBuilder) -> None:
    """With iterations in an executor, ordinary roots are ignored."""
    host = space.host()
    line = host.line()
    line.event("train", 0, 10000, {"_r": 1, "step_num": 3})
    for begin, iteration in ((100, 0), (500, 1), (900, 1), (1300, 2)):
        line.event("ExecutorState::Process", begin, 200, {"id": 5, "iter_num": iteration})
        allocate(line, begin + 50, begin)
    other = host.line()
    for begin, iteration in ((50, 2), (1700, 0)):
        other.event("ExecutorState::Process", begin, 200, {"id": 5, "iter_num": iteration})
        allocate(other, begin + 100, begin + 1)


@ROOT_CASES.add("grouping: loops")
def only_iteration_zero_is_no_loop(space: SpaceBuilder) -> None:
    """Executor events that only know iteration 0 leave ordinary roots in force."""
    line = space.host().line()
    line.event("train", 0, 1000, {"_r": 1})
    for begin in (100, 500):
        line.event("ExecutorState::Process", begin, 200, {"id": 5, "iter_num": 0})
        allocate(line, begin + 50, begin)
    line.event("ExecutorState::Process", 2000, 200, {"id": 6})


@ROOT_CASES.add("grouping: loops")
def single_iteration_other_than_zero(space: SpaceBuilder) -> None:
    """One iteration is a loop when its number is not 0."""
    line = space.host().line()
    line.event("train", 0, 1000, {"_r": 1})
    allocate(line, 50, 1)
    line.event("ExecutorState::Process", 100, 200, {"id": 5, "iter_num": 3})
    allocate(line, 150, 2)


@ROOT_CASES.add("grouping: loops")
def loops_of_tf_data_do_not_count(space: SpaceBuilder) -> None:
    """Executor events of captured functions are no loop."""
    line = space.host().line()
    line.event("InstantiatedCapturedFunction::Run", 0, 10, {"id": 5})
    for begin, iteration in ((100, 1), (500, 2)):
        line.event("ExecutorState::Process", begin, 200, {"id": 5, "iter_num": iteration})
        allocate(line, begin + 50, begin)
    line.event("train", 1000, 100, {"_r": 1})
    allocate(line, 1050, 3)


@ROOT_CASES.add("grouping: loops")
def nested_loop_iterations(space: SpaceBuilder) -> None:
    """An iteration inside another: the outer one takes it, yet its number is used up."""
    line = space.host().line()
    line.event("ExecutorState::Process", 100, 1000, {"id": 5, "iter_num": 0})
    line.event("ExecutorState::Process", 200, 200, {"id": 6, "iter_num": 1})
    allocate(line, 250, 1)
    line.event("ExecutorState::Process", 2000, 200, {"id": 5, "iter_num": 1})
    allocate(line, 2050, 2)


@ROOT_CASES.add("grouping: spreading")
def groups_do_not_spread_into_others(space: SpaceBuilder) -> None:
    """An event already in a group keeps it, and what lies below it is not reached through it."""
    host = space.host()
    line = host.line()
    line.event("outer", 0, 1000, {"_r": 1, "_pt": 2, "_p": 1})
    line.event("inner", 100, 500, {"_r": 2})
    line.event("work", 200, 100)
    allocate(line, 250, 1)
    allocate(line, 700, 2)
    other = host.line()
    other.event("consumer", 3000, 100, {"_ct": 2, "_c": 1})
    allocate(other, 3050, 3)


@ROOT_CASES.add("grouping: names")
def group_names(space: SpaceBuilder) -> None:
    """Graph type or event name, then iteration, step number or group, of the nearest ancestor."""
    line = space.host().line()
    roots: list[tuple[str, dict[str, object]]] = [
        ("train", {"step_num": 170}),
        ("train", {"step_num": 170, "iter_num": 4}),
        ("train", {}),
        ("train", {"graph_type": "eager"}),
        ("train", {"graph_type": Ref("serving"), "step_num": Uint(3)}),
        ("train", {"graph_type": 5, "step_num": -2}),
        ("FunctionRun", {"step_num": 9}),
        ("SessionRun", {}),
        ("RunGraph", {"graph_type": "tpu"}),
        ("ExecutorState::Process", {"iter_num": 2}),
        ("KernelLaunch", {"step_num": "x"}),
        ("", {}),
    ]
    for number, (name, stats) in enumerate(roots):
        line.event(name, number * 1000, 100, {"_r": 1, **stats})
        allocate(line, number * 1000 + 50, number)


@ROOT_CASES.add("grouping: names")
def name_from_an_ancestor(space: SpaceBuilder) -> None:
    """What the root itself does not say is taken from the nearest ancestor."""
    line = space.host().line()
    line.event("job", 0, 5000, {"graph_type": "outer", "step_num": 1})
    line.event("task", 100, 3000, {"step_num": 2})
    line.event("train", 200, 100, {"_r": 1})
    allocate(line, 250, 1)


@ROOT_CASES.add("grouping: practice")
def annotated_steps_with_function_runs(space: SpaceBuilder) -> None:
    """The usual TensorFlow capture: annotation, function run, executors in a pool."""
    host = space.host({"process_id": 8})
    python = host.line("python")
    pool = host.line("tf_pool")
    for step in range(4):
        begin = step * 10000
        python.event("train", begin, 9000, {"_r": 1, "step_num": 170 + step})
        run = {"_r": 1, "_pt": 2, "_p": 900 + step, "id": 40 + step}
        python.event("FunctionRun", begin + 100, 8000, run)
        executor = {"_ct": 2, "_c": 900 + step, "id": 40 + step, "iter_num": 0}
        pool.event("ThreadpoolListener::StartRegion", begin + 200, 0, {"_ct": 15, "_c": step})
        pool.event("ExecutorState::Process", begin + 300, 5000, executor)
        pool.event("net/MatMul:MatMul", begin + 400, 1000)
        allocate(pool, begin + 500, 1, 64 + step, in_use=1000 + step, tf_op="net/MatMul")
        pool.event("ThreadpoolListener::StopRegion", begin + 6000)
    prefetch = host.line("tf_data")
    for number in range(8):
        allocate(prefetch, number * 5000 + 7, 100 + number, in_use=900, tf_op="Iterator")
