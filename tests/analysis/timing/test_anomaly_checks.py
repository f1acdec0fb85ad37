"""The checks of PyTorch's anomaly detection after each node of a backward pass."""

from tests.analysis.timing.kineto_jobs import job, of_kind
from tests.each_row import each_row

NODE = "autograd::engine::evaluate_function: "
STORE = "torch::autograd::AccumulateGrad"
CHECKS = ("aten::isnan", "aten::_is_any_true", "aten::item")


def node(number, name="MmBackward0", checks=CHECKS):
    """A node of 500 us, with its gradient and what follows it."""
    at = 500 * number
    ops = [(NODE + name, at, at + 400), ("aten::mm", at + 10, at + 200)]
    ops += [(op, at + 210 + 20 * n, at + 220 + 20 * n) for n, op in enumerate(checks)]
    if checks:
        ops.append(("aten::_local_scalar_dense", at + 251, at + 252))
    return ops


def passes(*nodes):
    return job([op for number, one in enumerate(nodes) for op in node(number, *one)])


def test_anomaly_detection():
    checked, stored = ("MmBackward0",), (STORE, ())
    (finding,) = of_kind(passes(checked, stored, checked, stored, checked), "host_sync")
    # Of little time too: what it saves of the forward pass is in no event.
    assert finding.severity == "warning"
    assert finding.title == (
        "anomaly detection of torch.autograd is on: after 3 of 3 nodes of the backward pass in "
        "each step the gradients are searched for NaN and the answer is read (aten::isnan, "
        "aten::_is_any_true, aten::item), which takes 1% of the step time; each op of the forward "
        "pass saves its stack besides"
    )
    assert (finding.evidence["callee"], finding.evidence["reads_per_step"]) == ("aten::isnan", 3)
    assert finding.rows[0] == {"callee": "aten::isnan", "times_a_step": 3.0}


def test_older_versions_reduce_with_any():
    older = ("aten::isnan", "aten::any", "aten::item")
    assert len(of_kind(passes(("MmBackward0", older)), "host_sync")) == 1


@each_row(
    "nodes",
    [
        # No check, a search that no one reads, and checks of a program's own hooks at few nodes,
        # or where gradients of weights are added up.
        [("MmBackward0", ())],
        [("MmBackward0", ("aten::isnan", "aten::any"))],
        [("MmBackward0", CHECKS), ("MmBackward0", ()), ("AddBackward0", ())],
        [("MmBackward0", ()), (STORE, CHECKS), (STORE, CHECKS)],
    ],
)
def test_what_is_none(nodes):
    assert of_kind(passes(*nodes), "host_sync") == []


def test_checks_in_a_forward_pass_are_none():
    ops = [(op, 20 * n, 20 * n + 10) for n, op in enumerate(CHECKS)]
    assert of_kind(job([*ops, (NODE + "MmBackward0", 500, 900)]), "host_sync") == []
