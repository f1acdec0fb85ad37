"""Steps of every sample and recording against the plain readers of what the program marked.

In all of them the host alone works, so a step lasts as long as its mark. Where nothing is marked
there is nothing to compare.
"""

import re
from functools import cache
from statistics import median

from tests.programs.known import DATA as PROGRAMS
from tests.programs.known_steps import KINETO, XSPACE
from tests.programs.known_steps import path as recording
from tests.shared import DATA, shared
from tests.sweeps import choice, each_sample

from reference import kineto, xspace_steps

XSPACES = {
    **{name: recording(name) for name in XSPACE},
    **{
        str(file.relative_to(DATA)): file
        for file in [
            *sorted(PROGRAMS.glob("*.xplane.pb.gz")),
            *sorted((PROGRAMS / "time").glob("*.xplane.pb.gz")),
            *sorted((DATA / "sessions").glob("*/plugins/profile/*/*.xplane.pb*")),
        ]
    },
}
ALL = [*XSPACES, *KINETO]


def in_every_run(name):
    return any(
        one.endswith((name, f"{name}.pt.trace.json.gz", f"{name}.xplane.pb.gz"))
        for one in choice()["samples"]
    )


MARKED_BY = {"mark", "annotation"}
IN_A_FRAME = {"jax_scan"}
"""Here a frame of Python begins within a mark and is left after it: a call in the frame has the
frame's step, and that has none, as it lies in no mark.
"""


@cache
def plainly(name):
    """The marks and the events of a file, and where its clock is zero, in ps."""
    if name in KINETO:
        trace = kineto.Trace.of(recording(name))
        return trace.steps(), trace.events, trace.first_ps
    events = xspace_steps.host_events(xspace_steps.read(XSPACES[name]))
    return xspace_steps.marks_of(events), events, profile_of(name).start_ns * 1000


def marks_of(name):
    """Name, begin and end of every mark (ps of the profile's clock), and whether it is cut off."""
    marks, _, zero = plainly(name)
    return [
        (mark.shown, mark.start_ps - zero, mark.end_ps - zero, getattr(mark, "is_cut_off", False))
        for mark in marks
    ]


def profile_of(name):
    return shared(recording(name) if name in KINETO else XSPACES[name])


def without_count(row):
    """A step's name as the program gave it: ours counts those without a number."""
    name = row["name"]
    return re.sub(r" [0-9]+$", "", name) if row["found_by"] == "annotation" else name


def check_steps(name):
    """The rows are the marks."""
    for table in ("steps", "step_breakdown"):
        rows = profile_of(name).columns(table).to_pylist()
        result = sorted(
            (without_count(row), row["start_ps"], row["end_ps"], row["is_cut_off"]) for row in rows
        )
        assert result == sorted(marks_of(name))
        assert {row["found_by"] for row in rows} <= MARKED_BY


def check_statistics(name):
    """The statistics are those of the steps that are whole, by what they are called."""
    answer = profile_of(name).time()
    assert answer.times is not None
    lengths = {}
    for shown, start, end, is_cut_off in marks_of(name):
        if not is_cut_off:
            lengths.setdefault(re.sub(r"[# ]\d+$", "", shown), []).append(end - start)
    most = max(lengths, key=lambda kind: sum(lengths[kind]))
    by_name = dict(answer.by_name) if len(lengths) > 1 else {most: answer.times}
    assert answer.times == by_name[most]
    result = {
        kind: (times.count, times.min_ps, times.median_ps, times.max_ps)
        for kind, times in by_name.items()
    }
    assert result == {
        kind: (len(some), min(some), round(median(some)), max(some))
        for kind, some in lengths.items()
    }


def check_events(name):
    """An event on the thread of the marks has the step of the mark that it lies in, or none.

    What crosses the begin or the end of a mark is left out.
    """
    marks, events, zero = plainly(name)
    threads = {mark.thread for mark in marks}
    expected = set()
    for event in (event for event in events if event.thread in threads):
        near = [m for m in marks if m.start_ps < event.end_ps and event.start_ps < m.end_ps]
        inside = [m for m in near if m.start_ps <= event.start_ps and event.end_ps <= m.end_ps]
        if near == inside:
            step = inside[-1].start_ps - zero if inside else None
            length = event.end_ps - event.start_ps
            expected.add((event.name, event.start_ps - zero, length, step))
    query = """
        select e.name, e.start_ps, e.duration_ps, s.start_ps as step
        from events e left join steps s on s.step_id = e.step_id
    """
    result = {tuple(row.values()) for row in profile_of(name).sql(query).to_pylist()}
    assert expected - result == set()


@each_sample("name", ALL, in_every_run)
def test_steps_are_the_marks(name):
    if marks_of(name):
        check_steps(name)


@each_sample("name", ALL, in_every_run)
def test_statistics_are_those_of_the_whole_steps(name):
    if marks_of(name):
        check_statistics(name)


@each_sample("name", [name for name in ALL if name not in IN_A_FRAME], in_every_run)
def test_events_have_the_step_of_the_mark_they_lie_in(name):
    if marks_of(name):
        check_events(name)
