"""PyTorch's memory events: who asked for what, and what was in use."""

import gzip
import json
import re
from pathlib import Path

from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened, rows, warned

import peakline
from peakline.findings.memory_answer import explain_memory

_US = 10**6


def _memory(ts: float, size: int, address: int = 64, **more) -> dict:
    arguments = {"Bytes": size, "Addr": address, "Device Type": 0, "Device Id": -1}
    where = {key: more.pop(key) for key in ("tid",) if key in more}
    return event("i", ts, "[memory]", cat="cpu_instant_event", s="t",
                 args={**arguments, **more}, **where)  # fmt: skip


def _op(start: float, duration: float, name: str, category: str = "cpu_op", **more) -> dict:
    return event("X", start, name, dur=duration, cat=category, **more)


def test_sizes_addresses_and_what_is_in_use(tmp_path):
    trace = [
        _memory(1, 4096, 2**63 + 1, **{"Total Allocated": 4096, "Total Reserved": 0}),
        _memory(3, -4096, 2**63 + 1, **{"Total Allocated": 0, "Total Reserved": 0}),
        _memory(2, 100, 7),
    ]
    with opened(tmp_path, trace) as profile:
        columns = ("time_ps", "sequence", "activity", "address", "allocated_bytes", "in_use_bytes",
                   "free_bytes", "reserved_bytes")  # fmt: skip
        assert rows(profile, "allocator_events", *columns) == [
            (0, 0, "allocation", 2**63 + 1, 4096, 4096, None, None),
            (1 * _US, 2, "allocation", 7, 100, None, None, None),
            (2 * _US, 1, "deallocation", 2**63 + 1, 4096, 0, None, None),
        ]


def _gpu(reserved: int, *, device: int = 0, kind: int = 1) -> dict:
    return _memory(
        1, 512,
        **{"Device Type": kind, "Device Id": device, "Total Allocated": 512},
        **{"Total Reserved": reserved},
    )  # fmt: skip


@each_row(
    ("properties", "record", "capacity"),
    [
        (None, _gpu(2048), None),
        ([{"id": 0, "totalGlobalMem": 4096}], _gpu(2048), 4096),
        ([{"id": 0, "totalGlobalMem": 4096}], _gpu(2048, kind=6), 4096),
        ([{"id": 1, "totalGlobalMem": 4096}, {"id": 0}], _gpu(2048), None),
        ([{"id": 1, "totalGlobalMem": 8192}, {"id": 0, "totalGlobalMem": 4096}],
         _gpu(2048, device=1), 8192),
        ([{"id": 0, "totalGlobalMem": 4096}, {"id": 0, "totalGlobalMem": 8192}], _gpu(2048), None),
        ([{"id": 0, "totalGlobalMem": 4096}], _gpu(2048, kind=0), None),
        ([{"id": 0, "totalGlobalMem": "4096"}], _gpu(2048), None),
        ([{"id": 0, "totalGlobalMem": True}], _gpu(2048), None),
        ([{"id": 0, "totalGlobalMem": 1 << 70}], _gpu(2048), None),
        ([3, None, []], _gpu(2048), None),
        ({"id": 0}, _gpu(2048), None),
    ],
)  # fmt: skip
def test_the_capacity_is_the_devices_not_what_its_pool_has(tmp_path, properties, record, capacity):
    document = {"traceEvents": [record]}
    if properties is not None:
        document["deviceProperties"] = properties
    with opened(tmp_path, document) as profile:
        columns = ("in_use_bytes", "free_bytes", "pool_bytes", "capacity_bytes")
        assert rows(profile, "allocator_events", *columns) == [(512, None, 2048, capacity)]
        [peak] = profile.memory().allocators
        assert (peak.peak_bytes, peak.capacity_bytes, peak.pool_bytes) == (512, capacity, 2048)
        assert profile.memory().findings == ()


def test_more_reserved_than_the_device_has_is_a_contradiction(tmp_path):
    device = {"id": 0, "totalGlobalMem": 1024}
    trace = {"deviceProperties": [device], "traceEvents": [_gpu(2048)]}
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "allocator_events", "capacity_bytes") == [(None,)]
        [warning] = profile.warnings
        assert warning.kind == "capacities_disagree"
        assert "1,024 bytes by deviceProperties, yet 2,048 were reserved" in warning.detail


@each_row(
    ("kind", "number", "name"),
    [
        (0, -1, "CPU"),
        (0, 0, "CPU"),
        (1, 0, "CUDA:0"),
        (6, 1, "HIP:1"),
        (12, 0, "XPU:0"),
        (13, 0, "MPS:0"),
        (15, 0, "HPU:0"),
        (19, 2, "MTIA:2"),
        (20, 3, "PrivateUse1:3"),
        (99, 0, "device type 99:0"),
        (None, 0, ":0"),
    ],
)
def test_allocators_are_named_by_their_device(tmp_path, kind, number, name):
    with opened(tmp_path, [_memory(1, 1, **{"Device Type": kind, "Device Id": number})]) as profile:
        assert rows(profile, "allocator_events", "allocator") == [(name,)]


def test_the_innermost_op_or_function_of_the_thread_asked(tmp_path):
    trace = [
        _op(0, 100, "train.py(3): step", "python_function"),
        _op(10, 50, "aten::linear"),
        _op(20, 10, "aten::addmm"),
        _op(20, 10, "ops.py(1): same", "python_function"),
        _op(21, 60, "other thread", tid=2),
        _op(22, 5, "no op", "user_annotation"),
        _memory(20, 1),
        _memory(25, 2),
        _memory(30, 3),
        _memory(31, 4),
        _memory(61, 5),
        _memory(101, 6),
        _memory(25, 7, tid=2),
        _memory(25, 8, tid=3),
    ]
    with opened(tmp_path, trace) as profile:
        assert sorted(rows(profile, "allocator_events", "allocated_bytes", "op")) == [
            (1, "aten::addmm"),
            (2, "aten::addmm"),
            (3, "aten::addmm"),
            (4, "aten::linear"),
            (5, "train.py(3): step"),
            (6, None),
            (7, "other thread"),
            (8, None),
        ]


def test_who_asks_is_not_the_op_that_only_allocates(tmp_path):
    trace = [
        _op(0, 100, "train.py(3): build", "python_function"),
        _op(1, 60, "torch/nn/modules/linear.py(9): __init__", "python_function"),
        _op(5, 2, "aten::empty"),
        _op(10, 20, "aten::clone"),
        _op(11, 10, "aten::empty_like"),
        _op(12, 8, "aten::empty_strided"),
        _op(90, 2, "<built-in method empty of type object at 0x7f0>", "python_function"),
        _op(90, 1, "aten::empty"),
        _op(120, 10, "aten::empty"),
        *(_memory(time, time) for time in (6, 14, 91, 125)),
    ]
    with opened(tmp_path, trace) as profile:
        assert sorted(rows(profile, "allocator_events", "allocated_bytes", "op")) == [
            (6, "train.py(3): build"),
            (14, "aten::clone"),
            (91, "train.py(3): build"),
            (125, "aten::empty"),
        ]


def test_of_two_ops_one_after_the_other_the_second_has_the_moment_between(tmp_path):
    trace = [_op(0, 10, "first"), _op(10, 10, "second"), _memory(10, 1), _memory(20, 2)]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "allocator_events", "op") == [("second",), ("second",)]


def test_an_op_that_outlives_the_one_around_it_still_counts(tmp_path):
    trace = [_op(0, 10, "a"), _op(5, 10, "b"), _memory(7, 1), _memory(12, 2)]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "allocator_events", "op") == [("b",), ("b",)]


def test_everything_that_was_running_is_the_stack(tmp_path):
    trace = [
        _op(0, 100, "train.py(3): step", "python_function"),
        _op(10, 20, "aten::linear"),
        _op(40, 20, "aten::linear"),
        _memory(15, 1),
        _memory(45, 2),
        _memory(70, 3),
        _memory(200, 4),
    ]
    with opened(tmp_path, trace) as profile:
        stacks = dict(rows(profile, "allocator_events", "allocated_bytes", "stack_id"))
        assert stacks[1] == stacks[2]
        assert stacks[4] is None
        frames = rows(profile, "stacks", "stack_id", "depth", "function", "file", "line")
        assert sorted(frames) == sorted([
            (stacks[1], 0, "aten::linear", "", 0),
            (stacks[1], 1, "step", "train.py", 3),
            (stacks[3], 0, "step", "train.py", 3),
        ])  # fmt: skip


def test_memory_belongs_to_the_step_it_happens_in(tmp_path):
    trace = [_op(10, 10, "ProfilerStep#4", "user_annotation"), _memory(5, 1), _memory(15, 2, tid=2)]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "allocator_events", "step_id") == [(None,), (0,)]


def test_memory_events_without_a_size_are_counted(tmp_path):
    trace = [_memory(1, 0), event("i", 2, "[memory]", args={"Addr": 1}), _memory(3, 5)]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "allocator_events", "allocated_bytes") == [(5,)]
        assert warned(profile) == {"bad_memory": 2}


def test_a_real_trace_agrees_with_a_slow_reading_of_it(root: Path):
    path = root / "tests/data/chrome_trace/noleak.pt.trace.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    memory = [e for e in events if e["name"] == "[memory]"]
    ops = [e for e in events if e.get("cat") in {"cpu_op", "python_function"}]
    assert {e["tid"] for e in memory} == {e["tid"] for e in ops}
    with peakline.open(str(path)) as profile:
        result = profile.columns("allocator_events")
        assert result.array("allocated_bytes").tolist() == [abs(e["args"]["Bytes"]) for e in memory]
        in_use = [e["args"]["Total Allocated"] for e in memory]
        assert result.array("in_use_bytes").tolist() == in_use
        for row in range(0, len(memory), 40):
            time = memory[row]["ts"]
            around = [op for op in ops if op["ts"] <= time <= op["ts"] + op["dur"]]
            inner = max(around, key=lambda op: (op["ts"], -op["dur"]), default=None)
            # An op; else a function of the program, whose files have relative paths.
            wanted = r"(?!aten::(?:empty|resize_))\w+::|(?!torch/|<)[^(]*\.py\("
            if inner and not re.match(wanted, inner["name"]):
                says = [op for op in around if re.match(wanted, op["name"])]
                ops_around = [op for op in says if "::" in op["name"]]
                inner = max(ops_around or says, key=lambda op: op["ts"], default=inner)
            name = inner and re.sub(r" at 0x[0-9a-f]+>", ">", inner["name"])
            assert result.names("op")[row] == name
        [peak] = explain_memory(result, profile.columns("steps")).allocators
        assert peak.peak_bytes == max(in_use)
        assert sum(buffer.bytes for buffer in peak.peak_buffers) == peak.peak_bytes
        live: dict[int, int] = {}
        for e in memory:
            if e["args"]["Bytes"] > 0:
                live[e["args"]["Addr"]] = e["args"]["Bytes"]
            else:
                live.pop(e["args"]["Addr"], None)
        assert peak.live_at_end_bytes == sum(live.values())
        assert profile.columns("steps").rows == 4
        assert warned(profile) == {}


def test_mapped_memory_is_an_allocator_of_its_own(tmp_path):
    """Batches of a DataLoader's workers: PyTorch reports them with the allocator's total as 0."""

    def mapped(ts, size, address):
        return _memory(ts, size, address, **{"Total Allocated": 0, "Total Reserved": max(size, 0)})

    def allocated(ts, size, address, total):
        return _memory(ts, size, address, **{"Total Allocated": total, "Total Reserved": 0})

    trace = [
        mapped(1, 300, 16),
        mapped(2, -200, 32),  # from before the profile
        allocated(3, 500, 48, 500),
        mapped(4, -300, 16),
        allocated(5, -500, 48, 0),  # the allocator's own 0
        mapped(6, 400, 32),
    ]
    with opened(tmp_path, trace) as profile:
        columns = ("allocator", "allocated_bytes", "in_use_bytes", "free_bytes")
        assert rows(profile, "allocator_events", *columns) == [
            ("CPU mapped", 300, 500, None),
            ("CPU mapped", 200, 300, None),
            ("CPU", 500, 500, None),
            ("CPU mapped", 300, 0, None),
            ("CPU", 500, 0, None),
            ("CPU mapped", 400, 400, None),
        ]
        answer = profile.memory()
        peaks = {peak.allocator: peak.peak_bytes for peak in answer.allocators}
        assert peaks == {"CPU": 500, "CPU mapped": 500}
        assert not answer.notices
        assert not answer.findings


def test_names_have_no_address_of_an_object(tmp_path):
    name = "<built-in method cat of type object at 0x7f5548acb3a0>"
    trace = [
        _op(0, 10, name, "python_function"),
        _memory(1, 8),
        _op(20, 10, name.replace("7f55", "7c78"), "python_function"),
        _memory(21, 8, 128),
        _memory(41, 8, 256),
    ]
    with opened(tmp_path, trace) as profile:
        same = ("<built-in method cat of type object>",)
        assert rows(profile, "allocator_events", "op") == [same, same, (None,)]
        assert {row[0] for row in rows(profile, "stacks", "function")} == set(same)
