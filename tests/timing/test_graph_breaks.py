"""Breaks of graphs that torch.compile makes, in traces made by hand."""

from tests.formats.chrome_traces import event, opened


def steps_of(breaks):
    """Six steps of 100 us with a compiled region of 60, in which so many others of 10 resume."""
    rows = []
    for step in range(6):
        at = 100 * step
        rows += [event("X", at, f"ProfilerStep#{step}", dur=100, cat="user_annotation"),
                 event("X", at + 1, "Torch-Compiled Region: 0/0", dur=60, cat="cpu_op"),
                 event("X", at + 2, "model.py(6): forward", dur=58,
                       cat="python_function")]  # fmt: skip
        for place in range(breaks):
            begin = at + 10 + 15 * place
            resumed = f"model.py(8): torch_dynamo_resume_in_forward_at_{8 + place}"
            rows += [event("X", begin, "aten::item", dur=1, cat="cpu_op"),
                     event("X", begin + 2, f"Torch-Compiled Region: {place + 1}/0", dur=10,
                           cat="cpu_op"),
                     event("X", begin + 3, resumed, dur=8, cat="python_function")]  # fmt: skip
    return rows


def test_regions_that_resume_another(tmp_path):
    with opened(tmp_path, steps_of(3)) as profile:
        (finding,) = [one for one in profile.time().findings if one.kind == "graph_breaks"]
    evidence = finding.evidence
    assert (evidence["breaks"], evidence["regions"], evidence["op"]) == (3.0, 4.0, "aten::item")
    assert (evidence["function"], evidence["file"]) == ("forward", "model.py")
    assert evidence["line"] in {8, 9, 10}
    assert abs(evidence["most_gain_share"] - 30 / 100) < 1e-9


def test_one_region_a_step_is_whole(tmp_path):
    with opened(tmp_path, steps_of(0)) as profile:
        assert "graph_breaks" not in [one.kind for one in profile.time().findings]
