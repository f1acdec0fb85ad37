"""The plain reader of PyTorch's traces: 200 odd traces as they were made, and steps cut off."""

import json

import pytest

from reference.kineto import Trace
from reference.odd_traces import ODDITIES, odd_trace
from tests.each_row import each_row


def event(name, cat, ts, dur, *, pid=1, tid=5, **args):
    return {
        "ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
        "args": args,
    }  # fmt: skip


def steps_of(*records):
    return [
        (step.name, step.number, step.is_cut_off)
        for step in Trace(json.dumps({"traceEvents": records})).steps()
    ]


@pytest.mark.parametrize(
    ("names", "cut_off"),
    [
        (["ab", "ab", "ab"], False),
        (["ab", "ab", "a"], True),
        (["ab", "ab", ""], True),
        (["ab", "ac", "a"], False),
        (["ab", "a"], False),
        (["ab", ""], True),
        (["", ""], False),
        (["a", "a", "ab"], False),
    ],
)
def test_a_last_step_is_cut_off_that_lacks_what_all_have(names, cut_off):
    records = []
    for number, inside in enumerate(names):
        records.append(event(f"ProfilerStep#{number}", "user_annotation", 10 * number, 9))
        records += [
            event(f"aten::{name}", "cpu_op", 10 * number + 1 + place, 1)
            for place, name in enumerate(inside)
        ]
    *before, last = steps_of(*records)
    assert [step[2] for step in before] == [False] * len(before)
    assert last[2] is cut_off


@each_row("seed", range(200))
def test_odd_traces_are_read_as_they_were_made(seed):
    made = odd_trace(seed)
    trace = Trace(made.text)
    devices = trace.devices()
    assert {key: work.busy_ps for key, work in devices.items()} == made.busy_ps
    assert {key: (work.start_ps, work.end_ps) for key, work in devices.items()} == made.spans_ps
    assert {key: work.communication_ps for key, work in devices.items()} == made.communication_ps
    assert {key: work.copies_ps for key, work in devices.items()} == made.copies_ps
    assert trace.first_ps == made.first_ps
    assert (trace.kernels(), trace.ops()) == (made.kernels, made.ops)
    found = [(step.shown, step.start_ps, step.end_ps, step.is_cut_off) for step in trace.steps()]
    assert sorted(found) == made.steps


def test_every_oddity_occurs():
    drawn = [odd_trace(seed) for seed in range(200)]
    assert all(sum(name in made.oddities for made in drawn) > 20 for name in ODDITIES)
    assert {made.flavour for made in drawn} == {"cuda", "mtia", "hpu", "old", "unknown"}
    assert {made.marks for made in drawn} == {"ProfilerStep", "step_num", "by_hand", "none"}
    assert odd_trace(3).text == odd_trace(3).text
