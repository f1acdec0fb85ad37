"""One pass over layers, or a loop: what is said of memory that every repetition leaves more of."""

import gzip
import json
import pickle

import numpy as np
from tests.each_row import each_row
from tests.memory.kinds import growth_findings
from tests.memory.records import alloc, free, history
from tests.tables.fake import columns_of

import peakline
from peakline.memory.growth.series import find_growth
from peakline.memory.growth.single_pass import PassFacts
from peakline.memory.marks import find_marks
from peakline.tables.tables import check_columns, empty_columns

KIB = 1024
NAME, OPS = "(unnamed allocator)", "op1 [16384] and 1 more"
NEVER = np.zeros(0, np.int64)


def repeated(count, chosen, work=(), *, stack=None):
    """``count`` repetitions of a buffer per size in ``chosen``, and of some that are freed at once.

    Each record is 10 ps after the one before; ``stack(turn)`` is the id of the stack.
    """
    rows, address, used = [], 0, 0
    for turn in range(count):
        for place, size in enumerate((*chosen, *work)):
            address += 1
            used += size
            result = {} if stack is None else {"stack_id": stack(turn)}
            one = alloc(address, size, op=f"op{place}", shape=f"[{size}]", in_use_bytes=used)
            rows.append(one | result)
            if place >= len(chosen):
                used -= size
                rows.append(free(address, in_use_bytes=used))
    return [row | {"time_ps": 10 * n} for n, row in enumerate(rows)]


def stacks_of(*stacks):
    """The table of the stacks 0, 1, ...: frames as function, file and line, the innermost first."""
    rows = [
        {"stack_id": number, "depth": depth, "function": function, "file": file, "line": line}
        for number, frames in enumerate(stacks)
        for depth, (function, file, line) in enumerate(frames)
    ]
    return check_columns("stacks", columns_of("stacks", rows))


def said(rows, stacks=None, forward=None, backward=NEVER):
    made = history(rows)
    start, end = (NEVER, NEVER) if forward is None else forward
    facts = PassFacts(empty_columns("stacks") if stacks is None else stacks, start, end, backward)
    growth = find_growth(made, 0, find_marks(made, 0, empty_columns("steps")), lambda: facts)
    return [(one.kind, one.severity, one.title) for one in growth_findings(made, growth)]


def module(name):
    return [("forward", "linear.py", 130), (f"nn.Module: {name}", "", 0), ("main", "train.py", 3)]


SIZES = (8 * KIB, 16 * KIB)
EVERY = (np.array([0]), np.array([10**6]))
"""Everything is made by ops that autograd records."""


def test_layers_of_one_pass_over_distinct_modules_are_held_for_the_backward_pass():
    rows = repeated(32, SIZES, stack=lambda turn: turn)
    assert said(rows, stacks_of(*(module(f"Linear_{n}") for n in range(32)))) == [
        (
            "one_pass",
            "info",
            f"{NAME}: stored for the backward pass, 32 layers, 24.0 KiB each: {OPS}",
        )
    ]


def test_the_same_modules_again_and_again_are_a_loop():
    rows = repeated(32, SIZES, stack=lambda turn: turn % 4)
    stacks = stacks_of(*(module(f"Linear_{n}") for n in range(4)))
    assert [one[:2] for one in said(rows, stacks, EVERY)] == [("leak", "warning")]


@each_row(
    ("backward", "forward", "kind"),
    [
        (NEVER, EVERY, "one_pass"),
        (np.array([55]), EVERY, "leak"),
        (NEVER, (np.array([5]), np.array([9])), "leak"),  # not made by such ops
        (np.array([10**6]), EVERY, "one_pass"),  # later than all of them
    ],
)
def test_forward_ops_of_autograd_keep_until_a_backward_op_runs(backward, forward, kind):
    rows = repeated(32, SIZES, (4 * KIB,))
    assert [one[0] for one in said(rows, None, forward, backward)] == [kind]


def test_what_a_loop_loses_beside_its_own_work_is_a_leak():
    rows = repeated(32, (8 * KIB,), (16 * KIB, 16 * KIB))
    assert [one[0] for one in said(rows, None, EVERY)] == ["leak"]


INNER = ("linear", "functional.py", 12)
CALL = ("_call_impl", "site-packages/torch/nn/modules/module.py", 1790)


@each_row(
    ("frames", "work", "kind"),
    [
        ([INNER, ("forward", "model.py", 8), CALL, ("main", "t.py", 3)], 4 * KIB, "one_pass"),
        ([INNER, ("forward", "model.py", 8), ("main", "t.py", 3)], 4 * KIB, "one_pass"),
        ([INNER, ("forward", "model.py", 8), ("main", "t.py", 3)], 32 * KIB, "leak"),
        ([INNER, ("backward", "_tensor.py", 8), CALL, ("main", "t.py", 3)], 4 * KIB, "leak"),
        ([], 4 * KIB, "leak"),
    ],
)
def test_one_frame_that_calls_all_of_them(frames, work, kind):
    rows = repeated(32, SIZES, (work,), stack=lambda _: 0)
    assert [one[0] for one in said(rows, stacks_of(frames, [INNER]))] == [kind]


@each_row(
    ("count", "work", "kinds"),
    [(8, (), ["one_pass"]), (13, (), ["leak"]), (8, (16 * KIB, 4 * KIB), ["leak"])],
)
def test_few_repetitions_of_which_nothing_is_released_tell_nothing(count, work, kinds):
    assert [one[0] for one in said(repeated(count, SIZES, work))] == kinds


def test_few_repetitions_are_said_as_such():
    assert said(repeated(8, SIZES)) == [
        (
            "one_pass",
            "info",
            f"{NAME}: 8 repetitions hold 24.0 KiB each, and none shows a release: {OPS}",
        )
    ]


def test_layers_with_names_of_their_own_do_not_repeat():
    rows = [
        alloc(n, 8 * KIB, op=f"layer_{n}/MatMul", shape="[4]", time_ps=10 * n) for n in range(32)
    ]
    assert find_marks(history(rows), 0, empty_columns("steps")) is None


def test_a_cache_of_keys_that_is_freed_in_the_end_is_no_leak():
    rows = repeated(20, (8 * KIB,), (4 * KIB,))
    rows += [free(1 + 2 * n, in_use_bytes=8 * KIB * (19 - n)) for n in range(20)]
    rows += repeated(20, (), (4 * KIB, 2 * KIB))
    rows = [row | {"time_ps": 10 * n} for n, row in enumerate(rows)]
    assert said(rows, None, EVERY) == []


# Kineto traces.


def kineto(path, turns, *, loses, backward=False):
    """A trace of ``turns`` calls of two ops that autograd records, without steps or stacks."""
    events, time, address, used = [], 0, 0, 0

    def op(name, size=None, freed=None, **args):
        nonlocal time, address, used
        made = []
        if size is not None:
            address += 64
            made.append((address, size))
        if freed is not None:
            made.append((freed, -16 * KIB))
        event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": time}
        events.append(event | {"dur": 8, "args": args})
        for n, (place, change) in enumerate(made):
            used += change
            args = {"Device Type": 0, "Device Id": -1, "Addr": place, "Bytes": change}
            args["Total Allocated"] = used
            event = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]"}
            events.append(event | {"pid": 1, "tid": 1, "ts": time + 2 + n, "args": args})
        time += 10
        return address

    for turn in range(turns):
        number = {"Sequence number": 2 * turn, "Fwd thread id": 0}
        one = op("aten::addmm", 16 * KIB, **number)
        two = op("aten::gelu", 16 * KIB, **number)
        if backward:
            op("autograd::engine::evaluate_function: GeluBackward0", freed=one, **number)
            op("autograd::engine::evaluate_function: AddmmBackward0", freed=two, **number)
        if loses:
            op("aten::mul", 16 * KIB)
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    with peakline.open(path) as profile:
        return [(one.kind, one.severity) for one in profile.memory().findings]


def test_a_trace_of_one_forward_pass_has_no_leak(tmp_path):
    path = tmp_path / "trace.json.gz"
    assert kineto(path, 24, loses=False) == [("one_pass", "info")]
    assert kineto(path, 24, loses=False, backward=True) == []


def test_a_leak_in_an_unmarked_loop_stays_found(tmp_path):
    path = tmp_path / "trace.json.gz"
    assert ("leak", "warning") in kineto(path, 24, loses=True, backward=True)


# Memory snapshots of PyTorch.

MODULE = "/v/site-packages/torch/nn/modules/module.py"


def snapshot(path, turns, *, loses):
    """A history of ``turns`` calls of one line within a module's forward pass: an activation, and
    what softmax needs for a moment. With ``loses`` it frees the activation, and keeps a copy that
    the training loop makes.
    """
    caller = [("forward", "model.py", 12), ("_call_impl", MODULE, 9), ("main", "train.py", 3)]
    trace, live = [], {}

    def record(action, address, size, *frames):
        where = [{"name": name, "filename": file, "line": line} for name, file, line in frames]
        trace.append(
            {"action": action, "addr": address, "size": size, "stream": 0,
             "time_us": len(trace), "frames": where}
        )  # fmt: skip

    def freed(address, size):
        record("free_requested", address, size)
        record("free_completed", address, size)

    for turn in range(turns):
        first = (turn + 1) << 24
        record("alloc", first, 1 << 20, ("linear", "functional.py", 1), *caller)
        record("alloc", first + (1 << 20), 1 << 18, ("softmax", "functional.py", 2), *caller)
        freed(first + (1 << 20), 1 << 18)
        if loses:
            record("alloc", first + (2 << 20), 1 << 18, ("copy", "train.py", 8))
            freed(first, 1 << 20)
        live[first + (2 << 20) * loses] = 1 << (18 if loses else 20)
    blocks = {
        address: {"size": size, "requested_size": size, "state": "active_allocated", "frames": []}
        for address, size in live.items()
    }
    segments = [
        {"device": 0, "address": address, "total_size": block["size"], "stream": 0,
         "segment_type": "large", "blocks": [block]}
        for address, block in blocks.items()
    ]  # fmt: skip
    path.write_bytes(pickle.dumps({"segments": segments, "device_traces": [trace]}))
    with peakline.open(path) as profile:
        return [(one.kind, one.severity) for one in profile.memory().findings]


@each_row(("loses", "kind"), [(False, ("one_pass", "info")), (True, ("leak", "warning"))])
def test_a_snapshot_of_one_forward_pass_has_no_leak(tmp_path, loses, kind):
    assert snapshot(tmp_path / "snapshot.pickle", 24, loses=loses) == [kind]
