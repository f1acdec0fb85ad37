"""What torch.compile compiles again and again, in PyTorch's words."""

from tests.each_row import each_row
from tests.sources.chrome_traces import event, opened

from peakline.findings.time_answer import answer_time

FRAME = "train.py(7): fit"


def finding(tmp_path, calls, *, frames=False, marked=True):
    """Of a trace with a step for each of ``calls``: a region and the shapes of its inputs."""
    events = []
    for number, (region, shapes) in enumerate(calls):
        at = 1000 * number
        name = f"Torch-Compiled Region: {region}"
        args = {} if shapes is None else {"Input Dims": shapes}
        events += [
            *[event("X", at, f"ProfilerStep#{number}", dur=1000, cat="user_annotation")] * marked,
            event("X", at + 90, "dynamo", dur=720, cat="cpu_op"),
            event("X", at + 100, "compile_fx_inner (dynamo_timed)", dur=700, cat="cpu_op"),
            event("X", at + 850, name, dur=100, cat="cpu_op"),
            event("X", at + 860, "CompiledFunction", dur=50, cat="cpu_op", args=args),
        ]
        events += [event("X", at + 50, FRAME, dur=920, cat="python_function")] if frames else []
    with opened(tmp_path, events) as profile:
        [one] = [one for one in answer_time(profile).findings if one.kind == "recompilation"]
        return one


def test_it_names_the_region_and_the_shapes_that_differ(tmp_path):
    one = finding(tmp_path, [(f"0/{n}", [[4, 2], [], [8 + n, 2]]) for n in range(6)])
    assert one.title == (
        "4 of 4 steps after the first 2 compile region 0 of torch.compile for the 6th time: 70% of "
        "their time; the shape of an input changes: [8, 2], [9, 2], [10, 2], ..."
    )
    assert "torch.compile(dynamic=True)" in one.suggestion
    assert "jax.jit" not in one.suggestion


def test_with_frames_it_names_who_calls_it(tmp_path):
    assert "for the 6th time, called in fit (train.py:7): 70%" in (
        finding(tmp_path, [(f"0/{n}", [[8 + n, 2]]) for n in range(6)], frames=True).title
    )


def test_where_no_steps_are_marked_it_names_the_region_too(tmp_path):
    one = finding(tmp_path, [(f"0/{n}", [[8 + n, 2]]) for n in range(6)], marked=False)
    assert one.title.startswith(
        "region 0 of torch.compile is compiled 6 times, 72% of the profile's time goes to "
        "compilation; the shape of an input changes: [8, 2], [9, 2], [10, 2], ..."
    )
    assert "torch.compile(dynamic=True)" in one.suggestion


@each_row(
    ("shapes", "says"),
    [
        ([None] * 6, "70% of their time"),
        ([[[8, 2]]] * 6, "the shapes of its inputs are the same each time"),
        ([[[8, 2]], [[8, 2], [3]]] * 3, "the number of its inputs changes"),
    ],
)
def test_what_the_shapes_do_not_say(tmp_path, shapes, says):
    calls = [(f"!1/0/{n}_1", shape) for n, shape in enumerate(shapes)]
    assert finding(tmp_path, calls).title.endswith(says)


def test_regions_that_were_compiled_once_are_not_named(tmp_path):
    """A program that compiles parts of its own in each step compiles none of them again."""
    assert "torch.compile" not in finding(tmp_path, [(f"{n}/0", [[8, 2]]) for n in range(6)]).title
