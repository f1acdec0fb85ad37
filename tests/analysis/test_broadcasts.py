"""Which large temporaries are blown up, by the inputs of the ops around them."""

from tests.analysis.histories import history, steps_at
from tests.analysis.records import alloc, events, free
from tests.analysis.timing.traces import HOST_PLANE, profile_of
from tests.each_row import each_row
from tests.profile.fake import FakeReader

from peakline.memory.marks import find_marks
from peakline.memory.origins.op_events import op_events_of
from peakline.memory.peak.buffers import buffers_at_peak
from peakline.memory.peak.optimizers import DENSE_OP, dense_gradients
from peakline.memory.peak.temporaries import is_broadcast, is_for_each_pair, is_written_out
from peakline.tables import Profile
from peakline.tables.derived import DERIVED

MIB = 1 << 20
NODE = "autograd::engine::evaluate_function: SubBackward0"


def job(ops, rows):
    """The ops ``(name, begin, end, dimensions)`` of a thread, and its allocator's records."""
    stats = [(n, "Input Dims", op[3]) for n, op in enumerate(ops) if len(op) > 3]
    base = profile_of({HOST_PLANE: {"1": [op[:3] for op in ops]}}, stats=stats, kind="chrome_trace")
    tables = {name: base.columns(name) for name in ("planes", "lines", "events", "event_stats")}
    reader = FakeReader(tables | {"allocator_events": events(rows), "stacks": []})
    made = history(rows)
    found = buffers_at_peak(made, 0, find_marks(made, 0, steps_at(0, 1000)), made.measured)
    return made, found, op_events_of(Profile(reader.of_format("chrome_trace"), derived=DERIVED))


def broadcast(dims, *others):
    rows = [alloc(1, 32 * MIB, op="aten::sub", time_ps=5), free(1, time_ps=90)]
    made, found, ops = job([("aten::sub", 0, 10, dims), *others], rows)
    return is_broadcast(made, found, 0, (0,), ops)


MATRIX, CUBE = "[[4096, 1], [1, 2048]]", "[[256, 1, 128], [1, 256, 128]]"


@each_row(
    ("dims", "others", "expected"),
    [
        (CUBE, [], True),
        # Pairs of numbers: a product reads them, a norm reduces them, or only their gradient is
        # summed up.
        (MATRIX, [("aten::linear", 20, 30, "[[4096, 2048], [8, 2048]]")], False),
        (MATRIX, [("aten::mean", 20, 30, "[[4096, 2048]]")], True),
        (MATRIX, [(NODE, 20, 40), ("aten::sum", 21, 30, "[[4096, 2048]]")], False),
        # Not larger than what it reads.
        ("[[4096, 2048], [1, 2048]]", [], False),
        # What says nothing of its result.
        ("[[99], [98]]", [], True),
        ("[[-1], [99999999999999999999]]", [], False),
        ("7", [], True),
    ],
)
def test_broadcasts(dims, others, expected):
    assert broadcast(dims, *others) is expected


@each_row(
    ("dims", "scores", "expected"),
    [
        ("[[255, 64], [128, 128]]", "[[2, 4, 128, 128]]", True),
        ("[[255, 64], [32, 128]]", "[[2, 4, 128, 128]]", False),
        ("[[255, 64], [128, 128]]", "[[2, 4, 128, 64]]", False),
    ],
)
def test_rows_for_each_pair(dims, scores, expected):
    rows = [alloc(1, 4 * MIB, op="aten::embedding", time_ps=5), free(1, time_ps=90)]
    ops = [("aten::embedding", 0, 10, dims), ("aten::softmax", 20, 30, scores)]
    made, _, known = job(ops, rows)
    assert is_for_each_pair(made, 0, known) is expected


@each_row(("rows_read", "is_dense"), [(512, True), (65_536, False)])
def test_dense_gradients_of_embeddings(rows_read, is_dense):
    rows = [
        alloc(1, 8 * MIB, op="aten::empty", time_ps=15),
        alloc(2, MIB, op="aten::mm", time_ps=30),
        free(2, time_ps=40),
        free(1, time_ps=60),
    ]
    ops = [
        (DENSE_OP, 10, 25, f"[[{rows_read}, 32], [{rows_read}]]"),
        ("aten::empty", 12, 18),
        ("aten::mm", 28, 35),
    ]
    found = dense_gradients(*job(ops, rows))
    assert (found is not None) is is_dense
    if found is not None:
        assert found.rows.tolist() == [0]
        assert (found.bytes, found.peak_after) == (8 * MIB, MIB + 512 * 32 * 4)


@each_row(
    ("dims", "expected"),
    [
        ("[[6, 1, 256], []]", True),
        # An image that is made four times as large; nothing recorded.
        ("[[2048, 1024], []]", False),
        ("", False),
    ],
)
def test_what_is_written_out_many_times(dims, expected):
    rows = [alloc(1, 32 * MIB, op="aten::repeat", time_ps=5), free(1, time_ps=90)]
    made, _, ops = job([("aten::repeat", 0, 10, dims)], rows)
    assert is_written_out(made, 0, ops) is expected
    assert not is_written_out(made, 0, None)
