"""Reductions in every backward pass of an accumulation, in traces made by hand."""

from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened

NODE = "autograd::engine::evaluate_function: "
ADDS = f"{NODE}torch::autograd::AccumulateGrad"


def training(*, reduces, within=ADDS, backend="nccl", updates=1):
    """Six steps of so many micro-batches as ``reduces`` has, which says of each whether it reduces;
    a micro-batch takes 100 us, of which a reduction takes 20, in the call and on the device.
    """
    rows, time, number = [], 0, 0
    for step in range(6):
        begin = time
        for place, does in enumerate(reduces):
            autograd = {"Sequence number": number, "Fwd thread id": 0}
            rows.append(event("X", time, "aten::linear", dur=30, cat="cpu_op", args=autograd))
            backward = {"Sequence number": number, "Fwd thread id": 1}
            rows += [event("X", time + 30, f"{NODE}AddmmBackward0", dur=30, cat="cpu_op",
                           args=backward),
                     event("X", time + 60, within, dur=40, cat="cpu_op")]  # fmt: skip
            if does:
                rows += [event("X", time + 70, "c10d::allreduce_", dur=20, cat="cpu_op"),
                         event("X", time + 70, f"{backend}:all_reduce", dur=20, tid=9,
                               cat="user_annotation")]  # fmt: skip
            time, number = time + 100, number + 1
            if (place + 1) % (len(reduces) // updates) == 0:
                rows.append(event("X", time, "Optimizer.step#SGD.step", dur=10,
                                  cat="user_annotation"))  # fmt: skip
                time += 10
        rows.append(event("X", begin, f"ProfilerStep#{step}", dur=time - begin,
                          cat="user_annotation"))  # fmt: skip
    return rows


def reduced(profile):
    return [one for one in profile.time().findings if one.kind == "communication_each_pass"]


def test_every_pass_reduces(tmp_path):
    with opened(tmp_path, training(reduces=[True] * 4)) as profile:
        (finding,) = reduced(profile)
    evidence = finding.evidence
    assert (evidence["op"], evidence["passes"], evidence["times_a_step"]) == (
        "c10d::allreduce_", 4.0, 4.0
    )  # fmt: skip
    # Three of four reductions of 20 us in a step of 410.
    assert abs(evidence["gain_share"] - 60 / 410) < 1e-3
    assert abs(evidence["most_gain_share"] - 60 / 410) < 1e-3
    with opened(tmp_path, training(reduces=[True] * 4, backend="gloo")) as profile:
        (finding,) = reduced(profile)
    assert abs(finding.evidence["most_gain_share"] - 3 / 4) < 1e-3


@each_row(
    "given",
    [
        {"reduces": [False, False, False, True]},
        {"reduces": [True]},
        {"reduces": [True, True], "updates": 2},
        {"reduces": [True] * 4, "within": f"{NODE}MulBackward0"},
    ],
)
def test_one_reduction_per_update_and_those_of_layers_are_none(tmp_path, given):
    with opened(tmp_path, training(**given)) as profile:
        assert reduced(profile) == []
