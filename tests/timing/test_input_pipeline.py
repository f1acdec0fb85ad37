"""Stages of input pipelines: connections, self time, waits, the bottleneck."""

import pytest
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder

from peakline.findings.kinds.input_bound import advice
from peakline.timing.input_pipeline import input_stages

US = 10**6


@pytest.fixture
def opened(opened):
    """Opens what a function fills a plane of host threads with."""

    def build(fill):
        builder = SpaceBuilder()
        fill(builder.host())
        return opened(builder)

    return build


def rows(profile, *columns):
    """The wanted columns of ``input_pipeline``, a tuple per stage."""
    return [tuple(row[c] for c in columns) for row in profile.columns("input_pipeline").to_pylist()]


def prefetching(host):
    """A program that waits 100 us, 90 of which a map works on another thread."""
    main, worker = host.line("python"), host.line("tf_data")
    main.event("Iterator::Root", 0, 100 * US).event("Iterator::Root::Prefetch", 0, 98 * US)
    worker.event("Iterator::Root::Prefetch::Map", 5 * US, 90 * US)
    worker.event("Iterator::Root::Prefetch::Map::Range", 6 * US, 10 * US)
    worker.event("Iterator::Root::Prefetch::Map", 300 * US, 50 * US)


def test_stages_are_connected_by_name(opened):
    assert rows(opened(prefetching), "stage", "parent", "category") == [
        ("Iterator::Root", None, "preprocessing"),
        ("Iterator::Root::Prefetch", "Iterator::Root", "preprocessing"),
        ("Iterator::Root::Prefetch::Map", "Iterator::Root::Prefetch", "preprocessing"),
        ("Iterator::Root::Prefetch::Map::Range", "Iterator::Root::Prefetch::Map", "source"),
    ]


def test_times_on_one_thread_and_across_threads(opened):
    result = rows(opened(prefetching), "total_ps", "self_ps", "wait_ps")
    assert [tuple(ps // US for ps in row) for row in result] == [
        (100, 2, 100),
        (98, 8, 98),
        (140, 130, 90),
        (10, 10, 10),
    ]


def test_the_stage_that_the_program_waits_for_is_the_bottleneck(opened):
    stages = input_stages(opened(prefetching))
    assert [stage.blocking_ps // US for stage in stages] == [2, 8, 80, 10]
    (slow,) = [stage for stage in stages if stage.is_bottleneck]
    assert slow.name == "Iterator::Root::Prefetch::Map"
    assert slow.why == (
        "80% of the time that the program waited for input, it waited for this stage"
    )


@each_row(
    ("length", "period", "held_up"),
    [(60 * US, 100 * US, True), (49 * US, 60 * US, False), (60 * US, 2000 * US, False)],
)
def test_a_fast_pipeline_holds_nobody_up(opened, length, period, held_up):
    def fill(host):
        line = host.line("python")
        for number in range(5):
            line.event("Iterator::Root", number * period, length)

    assert rows(opened(fill), "is_bottleneck") == [(held_up,)]


def test_calls_are_told_apart(opened):
    def fill(host):
        line = host.line("python")
        for number in range(1, 21):
            line.event("Iterator::Root", number * 100, number)

    columns = ("occurrences", "min_ps", "median_ps", "p95_ps", "max_ps")
    assert rows(opened(fill), *columns) == [(20, 1, 10, 19, 20)]


def test_stages_that_tell_of_themselves(opened):
    def fill(host):
        line = host.line("python")
        for name, offset, length, category in (
            ("batch", 0, 100, "preprocessing"), ("read", 10, 30, "read")
        ):  # fmt: skip
            stats = {"_ipl_stage_name": name, "_ipl_stage_category": category, "_ipl_stage_id": 1}
            line.event(f"any {name}", offset, length, stats)

    assert rows(opened(fill), "stage", "parent", "category", "self_ps", "wait_ps") == [
        ("batch", None, "preprocessing", 70, 100),
        ("read", "batch", "source", 30, 30),
    ]


@each_row(
    ("name", "category"),
    [
        ("x:InfeedEnqueueTuple", "enqueue"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "other"),
    ],
)
def test_other_ways_to_bring_data(opened, name, category):
    profile = opened(lambda host: host.line("t").event(name, 0, 5))
    assert rows(profile, "stage", "category", "wait_ps") == [(name, category, 5)]


def test_a_program_without_a_pipeline(opened):
    assert rows(opened(lambda host: host.line("t").event("work", 0, 5)), "stage") == []


def test_what_to_do_about_a_loader_depends_on_who_prepares_its_batches():
    loader = "enumerate(DataLoader)#_{}ProcessDataLoaderIter.__next__"
    assert advice(loader.format("Single")).startswith("Let processes of their own prepare")
    many = loader.replace("Process", "Processing").format("Multi")
    assert advice(many).startswith("Processes of its own prepare the batches already")


@each_row(
    ("ops", "is_python"),
    [
        ([("EagerPyFunc:EagerPyFunc", 20, 70)], True),
        ([("map/PyFunc:PyFunc", 20, 50), ("map/Add:AddV2", 70, 20)], True),
        ([("map/PyFunc:PyFunc", 20, 20), ("map/Decode:DecodeJpeg", 40, 50)], False),
        ([("PyFunc:PyFunc", 20, 10)], False),
        ([("PyFunc:PyFunc", 200, 90)], False),
        ([("NotPyFunc", 20, 70)], False),
    ],
)
def test_a_bottleneck_in_python_by_the_ops_that_run_meanwhile(opened, ops, is_python):
    """Threads of the pool run a stage's ops, in none of its calls; of two at a time once."""

    def fill(host):
        prefetching(host)
        for thread in "pool/1", "pool/2":
            line = host.line(thread)
            for name, offset, length in ops:
                line.event(name, offset * US, length * US)

    stages = input_stages(opened(fill))
    worst = next(stage for stage in stages if stage.is_bottleneck)
    assert worst.name == "Iterator::Root::Prefetch::Map"
    assert worst.is_python is is_python
    # The map works from 5 to 95, the range below it from 6 to 16.
    times = {us for _, at, length in ops[:1] for us in range(at, at + length) if us < 95}
    is_op = "PyFunc:" in f"{ops[0][0]}"
    assert worst.python_ps == len(times) * US * is_op
    assert [stage for stage in stages if stage.is_python] == ([worst] if is_python else [])


@each_row("stage", ["MapAndBatch", "BatchV2::Map", "FlatMap::Generator", "Filter", "Prefetch"])
def test_more_threads_help_a_function_of_python_only_where_it_waits(stage):
    words = advice(f"Iterator::Root::Prefetch::{stage}", is_python=True)
    assert "so more of them (num_parallel_calls) help only where it waits" in words
    assert "in parallel" not in words


def test_a_finding_says_that_the_input_is_made_in_python(opened):
    """One step of 100 us, most of which it waits for a map in Python; and without that."""
    for op, is_python in ("EagerPyFunc:EagerPyFunc", True), ("Decode:DecodeJpeg", False):

        def fill(host, op=op):
            main, worker, pool = host.line("python"), host.line("tf_data"), host.line("pool")
            for at in range(0, 800 * US, 100 * US):
                step = main.event("train", at, 100 * US, {"step_num": at // US // 100, "_r": 1})
                step.event("Iterator::Root", at, 90 * US)
                step.event("Iterator::Root::Prefetch", at, 90 * US)
                worker.event("Iterator::Root::Prefetch::MapAndBatch", at, 89 * US)
                pool.event(op, at + US, 85 * US)

        (finding,) = (one for one in opened(fill).time().findings if one.kind == "input_bound")
        assert ("in a function of Python" in finding.title) is is_python
        assert ("help only where it waits" in finding.suggestion) is is_python
