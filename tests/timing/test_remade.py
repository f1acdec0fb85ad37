"""Models and pipelines that every step sets up anew."""

import pytest
from tests.each_row import each_row

from reference.xspace_builder import SpaceBuilder

MS = 10**9
STEPS = 6
EAGER = "EagerLocalExecute: "
OTHERS = {"host_bound", "input_bound", "recompilation", "tiny_ops", "python_work"}


@pytest.fixture
def said(opened):
    """The findings of steps of 100 ms that run these ops: name, start and length in ms."""

    def findings(ops, first=()):
        line = (builder := SpaceBuilder()).host().line("python")
        for step in range(STEPS):
            begin = 100 * step
            stats = {"step_num": step, "_r": 1}
            line.event("train", begin * MS, 100 * MS, stats)
            for name, start, length in [*ops, *(first if step < 2 else ())]:
                line.event(EAGER + name, (begin + start) * MS, length * MS)
        return opened(builder).findings()

    return findings


LOAD = [
    ("VarHandleOp", 10, 1), ("AssignVariableOp", 20, 5), ("VarHandleOp", 40, 1),
    ("RestoreV2", 60, 10), ("MatMul", 80, 4), ("__inference_serve_7", 90, 5),
]  # fmt: skip
PREDICT = [
    ("TensorDataset", 5, 10), ("MakeIterator", 20, 30), ("IteratorGetNext", 60, 5),
    ("__inference_one_step_on_data_distributed_112", 70, 8),
]  # fmt: skip
OWN = [*PREDICT[:3], ("__inference_train_step_9", 70, 8)]


@each_row(
    ("ops", "words", "least", "most", "advice"),
    [
        (LOAD, "a model is loaded or built anew in every step (2 variables", 0.60, 0.96, "Load or"),
        (PREDICT, "as model.predict does (1 iterator opened)", 0.40, 0.92, "Call the model"),
        (
            OWN,
            "a pipeline of tf.data is made anew in every step (1 it",
            0.40,
            0.92,
            "Make the data",
        ),
    ],
)
def test_what_a_step_sets_up_is_named_and_nothing_beside_it(said, ops, words, least, most, advice):
    findings = said(ops)
    (finding,) = [one for one in findings if one.kind == "remade_each_step"]
    assert words in finding.title
    assert finding.suggestion.startswith(advice)
    assert finding.evidence["gain_share"] == pytest.approx(least)
    assert finding.evidence["most_gain_share"] == pytest.approx(most)
    assert not OTHERS & {one.kind for one in findings}


MANY_CALLS = [*OWN[:3], *((f"__inference_train_step_{n}", 70 + n, 1) for n in range(8))]


@each_row(
    ("ops", "first"),
    [
        (LOAD[4:], LOAD[:4]),
        (PREDICT[2:], PREDICT[:2]),
        ([*LOAD[:1], *LOAD[4:]], ()),
        (MANY_CALLS, ()),
    ],
)
def test_what_is_set_up_once_or_for_a_pass_is_no_fault(said, ops, first):
    assert "remade_each_step" not in {one.kind for one in said(ops, first)}
