"""Copies of all weights in each step, and savings of the same time, in traces made by hand."""

from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened

from peakline.findings.finding import Finding
from peakline.findings.overlaps import without_overlaps

NODE = "autograd::engine::evaluate_function: "
WEIGHTS = 6


def training(*, clones, inside=None, name="aten::clone", sets=0):
    """Six steps of 200 us with the gradients of six weights, and ``clones`` in a function of 60."""
    rows = []
    for step in range(6):
        at = 200 * step
        rows.append(event("X", at, f"ProfilerStep#{step}", dur=200, cat="user_annotation"))
        rows.append(event("X", at + 1, "aten::linear", dur=40, cat="cpu_op"))
        rows += [event("X", at + 50 + 5 * place, f"{NODE}torch::autograd::AccumulateGrad", dur=5,
                       cat="cpu_op") for place in range(WEIGHTS)]  # fmt: skip
        rows.append(event("X", at + 100, "train.py(30): average", dur=60, cat="python_function"))
        if inside:
            rows.append(event("X", at + 100, inside, dur=60, cat="cpu_op"))
        rows += [event("X", at + 101 + 5 * place, name, dur=4, cat="cpu_op")
                 for place in range(clones)]  # fmt: skip
        rows += [event("X", at + 101 + 5 * place + 4, "aten::set_", dur=1, cat="cpu_op")
                 for place in range(sets)]  # fmt: skip
    return rows


def copied(profile):
    return [one for one in profile.time().findings if one.kind == "model_copied"]


def test_weights_that_are_cloned_in_each_step(tmp_path):
    with opened(tmp_path, training(clones=6)) as profile:
        (finding,) = copied(profile)
    evidence = finding.evidence
    assert (evidence["function"], evidence["line"], evidence["weights"]) == ("average", 30, 6)
    # Half of what the function takes, at least; six clones of 4 us are less.
    assert abs(evidence["gain_share"] - 30 / 200) < 1e-3
    assert abs(evidence["most_gain_share"] - 1.2 * 60 / 200) < 1e-3
    with opened(tmp_path, training(clones=6, name="aten::new_empty", sets=9)) as profile:
        (finding,) = copied(profile)
    assert (finding.evidence["op"], finding.evidence["weights"]) == ("copy.deepcopy", 6)


@each_row("given", [{"clones": 3}, {"clones": 0}, {"clones": 6, "inside": "aten::gru_cell"},
                    {"clones": 6, "name": "aten::new_empty"}])  # fmt: skip
def test_fewer_clones_and_those_of_an_op_are_none(tmp_path, given):
    with opened(tmp_path, training(**given)) as profile:
        assert copied(profile) == []


def test_of_two_findings_about_the_same_time_one_promises_it():
    def finding(kind, gain, function="log", **more):
        about = {"function": function, "file": "train.py", "gain_ps": 1, "gain_share": gain}
        return Finding(kind, "warning", kind, about | more, "")

    def promised(*findings):
        return [one.evidence["gain_share"] for one in without_overlaps(findings)]

    reads = finding("host_sync", 0.3, most_gain_share=0.5)
    assert promised(reads, finding("expensive_op", 0.4)) == [0.3, 0.0]
    assert promised(reads, finding("expensive_op", 0.4, function="forward")) == [0.3, 0.4]
    assert promised(finding("expensive_op", 0.4), finding("expensive_op", 0.2)) == [0.4, 0.2]
    assert promised(finding("growing_work", 0.8, None), finding("tiny_ops", 0.6)) == [0.8, 0.0]
    (_, part) = without_overlaps((reads, finding("tiny_ops", 0.4)))
    assert (part.severity, part.evidence["part_of"]) == ("info", "host_sync")
