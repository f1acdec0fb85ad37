"""The ``thread_time`` table."""

from tests.reference.xspace_builder import SpaceBuilder

US = 10**6


def rows_of(opened, space):
    return opened(space).columns("thread_time").to_pylist()


def test_busy_idle_waiting_and_the_longest_name(opened):
    space = SpaceBuilder()
    space.plane("/device:GPU:0").line("Stream #1(Compute)").event("kernel", 0, US)
    host = space.host()
    host.line("quiet")
    python = host.line("python", timestamp_ns=1000)
    python.event("step", 0, 10 * US)
    python.event("inner", 2 * US, 3 * US)
    python.event("cudaStreamSynchronize", 6 * US, 2 * US)
    python.event("inner", 20 * US, 4 * US)
    assert rows_of(opened, space) == [
        {
            "line_id": 2,
            "plane_id": 1,
            "thread": "python",
            "events": 4,
            "busy_ps": 14 * US,
            "idle_ps": 10 * US,
            "wait_ps": 2 * US,
            "longest_op": "inner",
            "longest_op_ps": 7 * US,
        }
    ]


def test_overlapping_events_are_covered_once(opened):
    space = SpaceBuilder()
    line = space.host().line("thread")
    line.event("a", 0, 6 * US)
    line.event("b", 4 * US, 6 * US)
    (row,) = rows_of(opened, space)
    assert (row["busy_ps"], row["idle_ps"], row["longest_op"]) == (10 * US, 0, "a")


def test_sums_beyond_what_a_double_holds_are_exact(opened):
    space = SpaceBuilder()
    line = space.host().line("thread")
    line.event("a", 0, 2**59 + 1)
    line.event("a", 2**61, 2**59 + 1)
    (row,) = rows_of(opened, space)
    assert row["longest_op_ps"] == 2**60 + 2


def test_a_profile_without_host_threads_has_no_rows(opened):
    space = SpaceBuilder()
    space.plane("/device:GPU:0").line("Stream #1(Compute)").event("kernel", 0, US)
    assert rows_of(opened, space) == []
