"""The executions of ops around records of memory, as PyTorch's traces have both."""

import numpy as np
from tests.analysis.records import alloc, events
from tests.analysis.timing.traces import HOST_PLANE, profile_of
from tests.profile.fake import FakeReader

from peakline.memory.origins.op_events import op_events_of
from peakline.tables import Profile
from peakline.tables.derived import DERIVED

BACKWARD = "autograd::engine::evaluate_function: MulBackward0"


def profile(ops, records, stats=(), *, kind="chrome_trace"):
    """A thread of ops ``(name, begin, end)``, and records ``(op, time)``."""
    base = profile_of({HOST_PLANE: {"1": ops}}, stats=stats, kind=kind)
    tables = {name: base.columns(name) for name in ("planes", "lines", "events", "event_stats")}
    rows = [alloc(n, 8, op=op, time_ps=time) for n, (op, time) in enumerate(records)]
    reader = FakeReader(tables | {"allocator_events": events(rows), "stacks": []})
    return Profile(reader.of_format(kind), derived=DERIVED)


OPS = [("aten::mul", 0, 10), (BACKWARD, 20, 60), ("aten::mul", 30, 50), ("aten::sum", 70, 80)]


def test_a_record_is_of_the_execution_of_its_op_that_runs():
    records = [("aten::mul", 5), ("aten::mul", 15), ("aten::mul", 40), ("aten::mm", 40), (None, 5)]
    found = op_events_of(profile(OPS, records))
    assert found.event.tolist() == [0, -1, 2, -1, -1]
    assert found.is_backward.tolist() == [False, False, True, False, False]


def test_what_ops_read():
    stats = [
        (0, "Input Dims", "[[4, 4]]"), (0, "Input type", '["double"]'),
        (1, "Input Dims", "[[9]]"), (1, "Input type", '["float"]'),
    ]  # fmt: skip
    found = op_events_of(profile(OPS, [("aten::mul", 5), ("aten::mul", 40), ("x", 5)], stats))
    # The inner op says nothing of its own: the one around it does.
    assert found.input_shapes(np.arange(3)) == ["[4, 4]", "[9]", ""]
    assert found.is_float64.tolist() == [True, False, False]


def test_what_converts_says_nothing_of_its_result():
    stats = [(0, "Input type", '["double"]')]
    ops = [("aten::_to_copy", 0, 10)]
    assert not op_events_of(profile(ops, [("aten::_to_copy", 5)], stats)).is_float64.any()


def test_other_formats_have_none():
    assert op_events_of(profile_of({HOST_PLANE: {"1": OPS}})) is None


def test_the_op_that_a_program_calls():
    ops = [("aten::one_hot", 0, 10), ("aten::zeros", 1, 8), ("aten::empty", 2, 5), *OPS[1:]]
    records = [("aten::empty", 3), ("aten::mul", 40), ("aten::sum", 75), ("x", 5)]
    found = op_events_of(profile(ops, records))
    assert [found.outermost_op(n) for n in range(4)] == ["aten::one_hot", "", "aten::sum", ""]
