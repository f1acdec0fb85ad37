"""Names that a file makes endless: the time grows with their length, not with its square."""

from __future__ import annotations

import time

import pytest

from peakline.analysis.timing import activity_names, device_lines, op_names, tensor_cores
from peakline.analysis.timing.activity_names import Activity

SIZE = 200_000
PARTS = [
    "M", "a", "1", ".1", "(", " ", "a_", "a/", "Compiler::", "triton", "prefetch",
    "Compiler::Await", "Executor::",
    "-start", "<built-in method ", "DataLoader", "aten::", "time.py ", "Backward1",
    "derived ", "device:", "gpu:0", "_1",
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("tail", ["", "\n!"])
def test_every_rule_of_names_takes_linear_time(part, tail):
    name = part * (SIZE // len(part)) + tail
    began = time.process_time()
    for rule in (
        lambda text: tensor_cores.uses(text, ""),
        activity_names.host_activity, activity_names.device_activity,
        activity_names.kind_of_collective, op_names.parse_op_name, device_lines._key,
        device_lines._DERIVED.fullmatch, tensor_cores.could_use,
    ):  # fmt: skip
        rule(name)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
