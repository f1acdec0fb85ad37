"""Models that are loaded or built in each step, in traces made by hand."""

from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened

READ = ("torch/serialization.py(1315): load", 30)
BUILT = ("serve.py(4): __init__", "torch/nn/modules/linear.py(96): __init__",
         "torch/nn/modules/linear.py(117): reset_parameters")  # fmt: skip
TAKEN = ("torch/nn/modules/module.py(2530): load_state_dict", 10)


def serving(*, read=False, built=False, taken=False, unpickled=False, every=1, steps=True):
    """Ten requests of 100 us; in each ``every``-th a function of 60 us makes the model."""
    rows = []

    def frame(at, name, dur):
        rows.append(event("X", at, name, dur=dur, cat="python_function"))

    for number in range(10):
        at = 100 * number
        if steps:
            rows.append(event("X", at, f"ProfilerStep#{number}", dur=100, cat="user_annotation"))
        frame(at + 1, "serve.py(20): handle", 95)
        rows.append(event("X", at + 80, "aten::linear", dur=10, cat="cpu_op"))
        if number % every:
            continue
        frame(at + 2, "serve.py(9): get_model", 60)
        if built:
            for depth, name in enumerate(BUILT):
                frame(at + 3 + depth, name, 15 - 2 * depth)
        if read:
            frame(at + 20, *READ)
        if unpickled:
            frame(at + 25, "torch/nn/modules/module.py(1924): __setstate__", 3)
        if taken:
            frame(at + 51, *TAKEN)
    return rows


def loads(tmp_path, **given):
    with opened(tmp_path, serving(**given)) as profile:
        return [one for one in profile.time().findings if one.kind == "model_loaded"]


@each_row("given, share", [
    ({"read": True, "taken": True, "built": True}, 0.55),
    ({"read": True, "unpickled": True}, 0.30),
    ({"built": True}, 0.15),
    ({"built": True, "taken": True}, 0.25),
])  # fmt: skip
def test_a_model_of_each_request(tmp_path, given, share):
    (finding,) = loads(tmp_path, **given)
    evidence = finding.evidence
    assert (evidence["function"], evidence["line"]) == ("get_model", 9)
    assert evidence["times_a_step"] == 1
    assert abs(evidence["share"] - share) < 1e-3
    assert abs(evidence["gain_share"] - 0.8 * share) < 1e-3
    assert evidence["most_gain_share"] >= 0.6
    assert ("from a file" in finding.title) == ("read" in given)


@each_row("given", [
    {"read": True},  # data
    {"taken": True},  # a target network
    {"read": True, "taken": True, "every": 5},  # a checkpoint now and then
    {"built": True, "steps": False},  # the layers of one model
])  # fmt: skip
def test_what_is_read_once_or_is_no_model(tmp_path, given):
    assert loads(tmp_path, **given) == []
