"""Embeddings of which an optimizer updates all rows, in traces made by hand."""

from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened

NODE = "autograd::engine::evaluate_function: EmbeddingBackward0"


def training(*, rows, read, update):
    """Six steps of 100 us: 20 for the gradient, 40 for the optimizer, on a table of this shape."""
    result = []
    for step in range(6):
        at = 100 * step
        looks_up, table = {"Input Dims": [[rows, 8], [read]]}, {"Input Dims": [update]}
        result += [event("X", at, f"ProfilerStep#{step}", dur=100, cat="user_annotation"),
                   event("X", at + 1, "aten::embedding", dur=5, cat="cpu_op", args=looks_up),
                   event("X", at + 10, NODE, dur=20, cat="cpu_op"),
                   event("X", at + 10, "aten::embedding_dense_backward", dur=20, cat="cpu_op"),
                   event("X", at + 40, "Optimizer.step#Adam.step", dur=50, cat="user_annotation"),
                   event("X", at + 41, "aten::sqrt", dur=40, cat="cpu_op", args=table)]  # fmt: skip
    return result


def dense(profile):
    return [one for one in profile.time().findings if one.kind == "dense_embedding_update"]


def test_all_rows_are_updated(tmp_path):
    with opened(tmp_path, training(rows=1000, read=16, update=[1000, 8])) as profile:
        (finding,) = dense(profile)
    evidence = finding.evidence
    assert (evidence["table_rows"], evidence["rows_read"]) == (1000, 16)
    assert abs(evidence["share"] - 60 / 100) < 1e-9
    assert abs(evidence["gain_share"] - 30 / 100) < 1e-9


@each_row(
    "given",
    [
        {"rows": 20, "read": 16, "update": [20, 8]},  # most rows are read
        {"rows": 1000, "read": 16, "update": [64, 64]},  # the table is updated otherwise
    ],
)
def test_what_is_read_and_sparse_updates_are_none(tmp_path, given):
    with opened(tmp_path, training(**given)) as profile:
        assert dense(profile) == []
