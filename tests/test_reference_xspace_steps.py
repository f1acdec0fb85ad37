"""The plain reader of an XSpace's marks: every rule on a few events."""

from reference.xspace_builder import SpaceBuilder, Uint
from reference.xspace_steps import cut_off_from, host_events, marks_of, runs_of
from tests.each_row import each_row

RUN = "PjitFunction(f)"


def events_of(*events, thread="python", base_ns=0):
    """The events (name, start, end, stats) of one thread, in ps."""
    builder = SpaceBuilder()
    builder.plane("Task Environment", {"profile_start_time": Uint(base_ns)})
    line = builder.host().line(thread)
    for name, start, end, *stats in events:
        line.event(name, start, end - start, stats[0] if stats else ())
    return host_events(builder.space)


def shown(events):
    return [(mark.name, mark.number, mark.start_ps, mark.end_ps) for mark in marks_of(events)]


@each_row("stats", [{"step_num": 7}, {"step_num": 7, "_r": 1}])
def test_a_number_marks_a_step_of_its_own_length(stats):
    function = ("FunctionRun", 12, 15, {"_r": 1})
    loop = [("WhileOp-StartBody", 13, 14, {"_r": 1})]
    assert shown(events_of(("train", 10, 20, stats), function, *loop)) == [("train", 7, 10, 20)]


def test_times_count_from_the_begin_of_the_profile():
    mark = ("train", 10, 20, {"step_num": 0})
    assert shown(events_of(mark, base_ns=3)) == [("train", 0, 3010, 3020)]


def test_a_name_alone_marks_where_nothing_else_does():
    step = [("train_step", 0, 9), (RUN, 2, 5), ("train_step", 10, 19), (RUN, 12, 15)]
    assert shown(events_of(*step)) == [("train_step", None, 0, 9), ("train_step", None, 10, 19)]
    assert shown(events_of(*step, ("train", 0, 30, {"step_num": 1}))) == [("train", 1, 0, 30)]


@each_row(
    "name, stats, count",
    [
        ("train_step", {"batch": 3}, 2),
        ("train", {"tf_function_call": "notTraced-nonXla"}, 0),  # TensorFlow calls its function
        ("$train.py:12 step", {}, 0),  # a function of Python
        ("EagerExecute", {}, 0),  # the runtime on its way to the function
    ],
)
def test_what_is_a_mark_by_its_name(name, stats, count):
    step = [(name, 0, 9, stats), (RUN, 2, 5), (name, 10, 19, stats), (RUN, 12, 15)]
    assert len(shown(events_of(*step))) == count


def test_a_name_that_occurs_once_or_without_calls_is_no_mark():
    once = [("train_step", 0, 9), (RUN, 2, 5), ("log", 20, 21), ("log", 22, 23)]
    assert shown(events_of(*once)) == []


@each_row("calls, count", [(1, 2), (2, 0)])
def test_names_around_a_few_of_the_calls_are_no_marks(calls, count):
    step = [("compile", 0, 9), (RUN, 2, 5), ("compile", 100, 109), (RUN, 102, 105)]
    others = [(RUN, 200 + number, 201 + number) for number in range(calls)]
    assert len(shown(events_of(*step, *others))) == count


def test_calls_are_the_outermost():
    found = runs_of(
        events_of((RUN, 2, 9), (RUN, 3, 8), ("EagerLocalExecute: __inference_g", 9, 10))
    )
    assert [(run.name, run.start_ps) for run in found] == [
        (RUN, 2), ("EagerLocalExecute: __inference_g", 9),
    ]  # fmt: skip


@each_row(
    "after, since",
    [
        ([], None),
        ([(RUN, 25, 26)], 25),
        ([("PjitFunction(g)", 25, 26)], None),  # runs between steps too
        ([("PjitFunction(h)", 25, 26)], None),  # has never run in a step
    ],
)
def test_a_call_after_the_last_mark_is_of_a_step_without_an_end(after, since):
    marked = [("train", start, start + 8, {"step_num": start}) for start in (0, 10)]
    inside = [(RUN, 2, 3), ("PjitFunction(g)", 4, 5), (RUN, 12, 13), ("PjitFunction(g)", 14, 15)]
    between = [("PjitFunction(g)", 8, 9)]
    events = events_of(*marked, *inside, *between, *after)
    assert cut_off_from(events, marks_of(events)) == since
