"""Names that a file makes endless: the work grows with their length, not with its square."""

import pytest
from tests.each_row import each_row
from tests.hanging import no_hang

from peakline.timing import op_names, tensor_cores
from peakline.trace import activity_names, device_lines
from peakline.trace.activity_names import Activity

RULES = (
    lambda text: tensor_cores.uses(text, ""),
    activity_names.host_activity, activity_names.device_activity,
    activity_names.kind_of_collective, op_names.parse_op_name, device_lines._key,
    device_lines._DERIVED.fullmatch, tensor_cores.could_use,
)  # fmt: skip
MANY = ["a_", "prefetch", "Compiler::", "triton", "DataLoader", "device:", "aten::"]
MORE = [
    "M", "a", "1", ".1", "(", " ", "a/", "Compiler::Await", "Executor::", "-start",
    "<built-in method ", "time.py ", "Backward1", "derived ", "gpu:0", "_1",
]  # fmt: skip


def check_rules(name):
    """Every rule is through with it in a fraction of a second; with the square of so many
    characters none would be in minutes.
    """
    for rule in RULES:
        with no_hang():
            rule(name)


@each_row("part", MANY)
def test_no_rule_of_names_takes_the_square_of_their_length(part):
    check_rules(part * (1_000_000 // len(part)) + "\n!")


@pytest.mark.soak
@each_row("part", [*MANY, *MORE])
@each_row("tail", ["", "\n!"])
def test_no_rule_takes_the_square_of_any_long_name(part, tail):
    check_rules(part * (4_000_000 // len(part)) + tail)


@each_row(
    ("name", "activity"),
    [
        ("GpuCompiler::RunBackend", Activity.COMPILE),
        ("XCompiler::AwaitAll", Activity.HOST),
        ("XCompiler::Run Compiler::Awaiting", Activity.HOST),
        ("XCompiler::Awaiting Compiler::Run", Activity.COMPILE),
        ("Triton kernel compile", Activity.COMPILE),
        ("$my_prefetcher.py:12 __next__", Activity.INPUT_WAIT),
        ("$prefetch.py:12 next", Activity.INPUT_WAIT),
        ("$fetch.py:12 next", Activity.HOST),
    ],
)
def test_rules_without_repetition_say_the_same(name, activity):
    assert activity_names.host_activity(name) == activity


@each_row(
    ("name", "key"),
    [
        ("/job:x/replica:0/task:0/device:GPU:0", ("/job:x/replica:0/task:0", "gpu:0")),
        ("/gpu:0", ("", "gpu:0")),
        ("gpu:0", ("", "gpu:0")),
        ("xdevice:GPU:1", ("x", "gpu:1")),
        ("nothing", ("", "nothing")),
    ],
)
def test_the_device_of_a_name(name, key):
    assert device_lines._key(name) == key
