"""Tables of memory logs: one log per question, clocks, and the slow reference."""

import gzip
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.formats.memory_logs import Reference, opened, printed_records, tensor

import peakline
from peakline import schema
from peakline.errors import DamagedError, StrictError, UnknownFormatError
from peakline.findings.memory_answer import explain_memory
from peakline.formats.memory_log.tables import read_clock
from peakline.record import MemoryLog, Tensor

NS = 1_795_000_000_000_000_000


def kinds(profile):
    return {warning.kind: warning.count for warning in profile.warnings}


def answer(profile, query):
    return profile.sql(query).to_pylist()


def test_an_allocation_and_its_end(tmp_path):
    def write(log):
        shape = {"allocated_bytes": 256, "ptr": 4096}
        log.record_tensor_allocation("dense/MatMul", 7, tensor(3, **shape), time_ns=NS)
        log.record_tensor_deallocation(3, "cpu", time_ns=NS + 5)

    rows = opened(tmp_path, write).columns("allocator_events").to_pylist()
    absent = dict.fromkeys(
        ("in_use_bytes", "reserved_bytes", "free_bytes", "pool_bytes", "capacity_bytes",
         "fragmentation", "peak_bytes", "stream",
         "stack_id", "line_id", "deferred", "returned_sequence", "region_type", "is_before",
         "count")
    )  # fmt: skip
    assert rows == [
        absent | {
            "time_ps": 0, "sequence": 0, "allocator": "cpu", "activity": "allocation",
            "address": 4096, "allocation_id": 3, "requested_bytes": 100, "allocated_bytes": 256,
            "op": "dense/MatMul", "data_type": "float", "shape": "[5, 5]", "step_id": 7,
        },
        absent | {
            "time_ps": 5000, "sequence": 1, "allocator": "cpu", "activity": "deallocation",
            "address": None, "allocation_id": 3, "requested_bytes": None, "allocated_bytes": None,
            "op": None, "data_type": None, "shape": None, "step_id": None,
        },
    ]  # fmt: skip


def test_every_field_of_every_message_is_in_log_records(tmp_path):
    big = 2**62

    def write(log):
        chosen = {"thread_id": 9}
        out = Tensor("bool", (), "gpu", big, big + 1, big + 2, 2**64 - 1, has_single_reference=True)
        log.record_step(-(2**63), "x:0->/y/0/;0", time_ns=NS, **chosen)
        log.record_tensor_allocation("a", -2, tensor(5), time_ns=NS, **chosen)
        log.record_tensor_deallocation(5, "cpu", time_ns=NS, **chosen)
        log.record_tensor_output("b", 2**63 - 1, 4, out, time_ns=NS, **chosen)
        log.record_raw_allocation("c", -3, 12, 64, 6, "cpu", time_ns=NS, **chosen)
        log.record_raw_deallocation("d", -3, 6, "cpu", deferred=True, time_ns=NS, **chosen)

    rows = opened(tmp_path, write).columns("log_records").to_pylist()
    result = [{k: v for k, v in row.items() if v is not None} for row in rows]
    head = {"time_ps": 0, "time_ns": NS, "thread": 9}
    assert result == [
        head | {"sequence": 0, "message": "MemoryLogStep", "step_id": -(2**63),
                "handle": "x:0->/y/0/;0"},
        head | {"sequence": 1, "message": "MemoryLogTensorAllocation", "step_id": -2, "op": "a",
                "data_type": "float", "shape": "[5, 5]", "requested_bytes": 100,
                "allocator": "cpu", "allocation_id": 5, "has_single_reference": False},
        head | {"sequence": 2, "message": "MemoryLogTensorDeallocation", "allocator": "cpu",
                "allocation_id": 5},
        head | {"sequence": 3, "message": "MemoryLogTensorOutput", "step_id": 2**63 - 1,
                "op": "b", "output_index": 4, "data_type": "bool", "shape": "[]",
                "requested_bytes": big, "allocated_bytes": big + 1, "allocator": "gpu",
                "allocation_id": big + 2, "address": 2**64 - 1, "has_single_reference": True},
        head | {"sequence": 4, "message": "MemoryLogRawAllocation", "step_id": -3, "op": "c",
                "requested_bytes": 12, "allocator": "cpu", "allocation_id": 6, "address": 64},
        head | {"sequence": 5, "message": "MemoryLogRawDeallocation", "step_id": -3, "op": "d",
                "allocator": "cpu", "allocation_id": 6, "deferred": True},
    ]  # fmt: skip


def test_an_output_of_an_unknown_buffer_begins_it(tmp_path):
    def write(log):
        log.record_tensor_output("a", 1, 0, tensor(3, allocated_bytes=128))
        log.record_tensor_output("b", 1, 0, tensor(3, allocated_bytes=128))
        log.record_tensor_deallocation(3, "cpu")

    profile = opened(tmp_path, write)
    assert answer(profile, "select op, region_type, allocated_bytes b from buffers") == [
        {"op": "a", "region_type": "output", "b": 128}
    ]
    assert answer(profile, "select op, is_shared from tensor_outputs") == [
        {"op": "a", "is_shared": False},
        {"op": "b", "is_shared": True},
    ]


def test_a_raw_buffer(tmp_path):
    def write(log):
        log.record_raw_allocation("TF_NewTensor", -3, 64, 4096, 5, "cpu")
        log.record_raw_deallocation("TensorFlow C Api", -3, 5, "cpu")

    profile = opened(tmp_path, write)
    query = "select op, region_type, requested_bytes, end_ps is not null as ended from buffers"
    assert answer(profile, query) == [
        {"op": "TF_NewTensor", "region_type": "raw", "requested_bytes": 64, "ended": True}
    ]


def test_records_without_an_id_are_untracked(tmp_path):
    def write(log):
        log.record_tensor_allocation("a", 1, tensor(0, size=10, ptr=4096))
        log.record_tensor_deallocation(0, "cpu")
        log.record_tensor_allocation("a", 1, tensor(0, size=20, ptr=4096))

    profile = opened(tmp_path, write)
    assert profile.columns("allocator_events").is_valid("address").tolist() == [False] * 3
    assert profile.warnings == [
        ("untracked", 3, ("records without an id, whose buffers cannot be followed: "
         "cpu: 2 allocations (30 bytes requested) and 1 deallocations"))
    ]  # fmt: skip
    assert profile.columns("log_records").array("address").tolist() == [4096, 0, 4096]


def test_of_very_many_allocators_the_first_are_named(tmp_path):
    def write(log):
        for n in range(30):
            log.record_tensor_deallocation(0, f"{n:02}")

    profile = opened(tmp_path, write)
    profile.columns("allocator_events")
    ((kind, count, text),) = profile.warnings
    assert (kind, count) == ("untracked", 30)
    assert text.endswith(
        "18: 0 allocations (0 bytes requested) and 1 deallocations; "
        "19: 0 allocations (0 bytes requested) and 1 deallocations and 10 more"
    )


def test_a_tensor_without_a_buffer_is_no_allocation(tmp_path):
    message = schema.MemoryLog()
    message.record.add(time_ns=NS, thread_id=1).step.step_id = 1
    record = message.record.add(time_ns=NS, thread_id=1)
    record.tensor_allocation.kernel_name = "a"
    record.tensor_allocation.tensor.shape.dim.add(size=0)
    path = tmp_path / "log"
    path.write_bytes(message.SerializeToString())
    with peakline.open(str(path)) as profile:
        assert profile.columns("allocator_events").rows == 0
        assert answer(profile, "select op, shape, allocator from log_records where op != ''") == [
            {"op": "a", "shape": "[0]", "allocator": None}
        ]


def test_steps(tmp_path):
    def write(log):
        one = {"kernel_name": "a", "tensor": tensor(0)}
        log.record_tensor_allocation(step_id=4, time_ns=NS, **one)
        log.record_step(4, "->/train/0/;0", time_ns=NS + 1)
        log.record_tensor_allocation(step_id=-6, time_ns=NS + 2, **one)
        log.record_tensor_allocation(step_id=-7120248421942406679, time_ns=NS + 3, **one)
        log.record_tensor_output("a", 4, 0, tensor(1), time_ns=NS + 4)
        log.record_tensor_deallocation(1, "cpu", time_ns=NS + 5)
        log.record_step(4, "->/train/0/;1", time_ns=NS + 6)
        log.record_raw_allocation("a", 4, 1, 1, 2, "cpu", time_ns=NS + 7)
        log.record_raw_deallocation("a", -2, 2, "cpu", time_ns=NS + 8)

    def step(number, name, start, end):
        return {
            "step_id": number,
            "name": name,
            "start_ps": start * 1000,
            "end_ps": end * 1000,
            "found_by": None,
            "is_cut_off": None,
        }

    profile = opened(tmp_path, write)
    assert profile.columns("steps").to_pylist() == [
        step(4, "->/train/0/;0", 0, 4),
        step(-6, "unknown", 2, 2),
        step(-7120248421942406679, "run 1", 3, 3),
        step(4, "->/train/0/;1", 6, 7),
        step(-2, "op kernel construction", 8, 8),
    ]
    assert profile.duration_ps == 8000


@each_row(
    ("number", "name"),
    [
        (-1, "constant folding"),
        (-2, "op kernel construction"),
        (-3, "external tensor allocation"),
        (-4, "network buffer"),
        (-5, "proto from GPU memory"),
        (-6, "unknown"),
        (-7, "-7"),
        (-(1 << 32), "-4294967296"),
        (-(1 << 32) - 1, "run 1"),
        (-(1 << 63), "run 1"),
        (0, "0"),
        ((1 << 63) - 1, "9223372036854775807"),
    ],
)
def test_names_of_special_steps(tmp_path, number, name):
    def write(log):
        log.record_tensor_allocation("a", number, tensor(1))

    assert opened(tmp_path, write).columns("steps").names("name").to_list() == [name]


def test_a_log_of_deallocations_has_no_steps(tmp_path):
    profile = opened(tmp_path, lambda log: log.record_tensor_deallocation(1, "cpu"))
    assert profile.columns("steps").rows == 0
    assert answer(profile, "select start_ps from buffers") == [{"start_ps": None}]


def test_ids_that_begin_anew_are_kept_apart(tmp_path):
    def write(log):
        for _ in range(2):
            log.record_tensor_allocation("a", 1, tensor(1, size=10))
            log.record_tensor_allocation("b", 1, tensor(2, size=20))
            log.record_tensor_deallocation(2, "cpu")

    profile = opened(tmp_path, write)
    query = "select allocator, op, end_ps is not null as ended from buffers order by buffer_id"
    assert answer(profile, query) == [
        {"allocator": "cpu", "op": "a", "ended": False},
        {"allocator": "cpu", "op": "b", "ended": True},
        {"allocator": "cpu (2)", "op": "a", "ended": False},
        {"allocator": "cpu (2)", "op": "b", "ended": True},
    ]
    assert kinds(profile) == {"id_restarted": 1}
    assert set(profile.columns("log_records").names("allocator").to_list()) == {"cpu"}


def test_ids_that_begin_anew_too_often(tmp_path):
    def write(log):
        for _ in range(18):
            log.record_tensor_allocation("a", 1, tensor(1))

    profile = opened(tmp_path, write)
    assert profile.columns("allocator_events").names("allocator").to_list()[-3:] == ["cpu (16)"] * 3
    assert kinds(profile) == {"id_restarted": 15, "id_restarted_too_often": 2}


def test_the_second_record_of_a_deferred_deallocation_frees_nothing(tmp_path):
    def write(log):
        log.record_raw_allocation("scratch", 1, 10, 64, 7, "gpu")
        log.record_raw_deallocation("scratch", 1, 7, "gpu", deferred=True)
        log.record_raw_allocation("scratch", 1, 20, 64, 9, "gpu")
        # By the time it is logged, the address belongs to number 9.
        log.record_raw_deallocation("scratch", 1, 9, "gpu")

    profile = opened(tmp_path, write)
    query = """
        select sequence, activity, allocation_id, deferred, returned_sequence
        from allocator_events order by sequence
    """
    assert [tuple(row.values()) for row in answer(profile, query)] == [
        (0, "allocation", 7, None, None),
        (1, "deallocation", 7, True, 3),
        (2, "allocation", 9, None, None),
    ]
    query = "select sequence, completes from log_records where completes is not null"
    assert answer(profile, query) == [{"sequence": 3, "completes": 1}]


def test_an_undeferred_deallocation_of_other_work_frees(tmp_path):
    def write(log):
        log.record_raw_allocation("scratch", 1, 10, 64, 7, "gpu")
        log.record_raw_allocation("other", 1, 20, 128, 8, "gpu")
        log.record_raw_deallocation("scratch", 1, 7, "gpu", deferred=True)
        log.record_raw_deallocation("other", 1, 8, "gpu")
        log.record_raw_deallocation("scratch", 1, -1, "gpu")

    events = opened(tmp_path, write).columns("allocator_events").to_pylist()
    assert [(e["allocation_id"], e["returned_sequence"]) for e in events] == [
        (7, None),
        (8, None),
        (7, 4),
        (8, None),
    ]


def test_a_cut_file_keeps_what_is_whole(tmp_path):
    path = tmp_path / "log"
    with MemoryLog(path) as log:
        for number in (1, 2):
            log.record_tensor_allocation("a", 1, tensor(number))
    path.write_bytes(path.read_bytes()[:-3])
    with peakline.open(str(path)) as profile:
        assert profile.columns("allocator_events").array("allocation_id").tolist() == [1]
        assert kinds(profile) == {"truncated": 1}
    with peakline.open(str(path), strict=True) as profile, pytest.raises(StrictError):
        profile.columns("allocator_events")


def test_a_log_of_no_whole_record_is_an_error(tmp_path):
    path = tmp_path / "log"
    with MemoryLog(path) as log:
        log.record_tensor_allocation("a", 1, tensor(1))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DamagedError, match="no record is whole"):
        peakline.open(str(path))


def test_records_of_an_unknown_kind_are_counted(tmp_path):
    log = schema.MemoryLog()
    log.record.add(time_ns=NS, thread_id=1)
    log.record.add(time_ns=NS, thread_id=1).step.handle = "a"
    path = tmp_path / "log"
    path.write_bytes(log.SerializeToString())
    with peakline.open(str(path)) as profile:
        assert profile.columns("log_records").names("handle").to_list() == ["a"]
        assert kinds(profile) == {"unknown_messages": 1}


def test_a_log_with_nothing_in_it_is_an_error(tmp_path):
    path = tmp_path / "log"
    path.write_text("I0000 training\nstep 1 loss 0.5\n")
    with pytest.raises(UnknownFormatError, match="no __LOG_MEMORY__ record and no out-of-memory"):
        peakline.open(str(path))


def test_text_among_other_lines_and_compressed(tmp_path):
    path = tmp_path / "log.gz"
    record = '__LOG_MEMORY__ MemoryLogTensorDeallocation { allocation_id: 3 allocator_name: "cpu" }'
    cut = "__LOG_MEMORY__ MemoryLogTensorDeallocation { allocation_id: 4 alloc"
    redacted = record.replace("3", "[REDACTED]")
    lines = ["epoch 1", f"x] {record}", f"x] {cut}", f"x] {redacted}", ""]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    with peakline.open(str(path)) as profile:
        assert profile.format == "memory_log"
        assert answer(profile, "select allocation_id n from log_records") == [{"n": 3}, {"n": None}]
        assert kinds(profile) == {"cut_lines": 1, "redacted": 1, "no_times": 2, "untracked": 1}


def test_records_and_a_report_of_a_failed_allocation(tmp_path):
    path = tmp_path / "log"
    with MemoryLog(path, text=True) as log:
        log.record_tensor_allocation("a", 1, tensor(1))
    report = """Current usage from device: /job:localhost/device:GPU:0, allocator: GPU_0_bfc
      250.78MiB from network/Conv2D
    """
    path.write_text(path.read_text() + report)
    with peakline.open(str(path)) as profile:
        assert profile.format == "memory_log"
        assert answer(profile, "select op from buffers") == [{"op": "a"}]
        assert answer(profile, "select allocator from oom_reports") == [{"allocator": "GPU_0_bfc"}]


def test_only_the_columns_asked_for_are_made(tmp_path):
    from peakline.formats import open_reader
    from peakline.tables import Warnings

    path = tmp_path / "log"
    with MemoryLog(path) as log:
        log.record_tensor_allocation("a", 1, tensor(1))
    result = open_reader(str(path)).read("log_records", Warnings(), {"op", "time_ps"})
    assert sorted(result) == ["op", "time_ps"]


def test_a_large_binary_log_is_read_in_pieces(tmp_path, monkeypatch):
    from peakline.formats.memory_log import reader

    def write(log):
        for number in range(1, 400):
            log.record_tensor_allocation(f"op{number % 7}", number, tensor(number))

    whole = opened(tmp_path, write)
    monkeypatch.setattr(reader, "_AT_ONCE", 0)
    pieces = peakline.open(str(tmp_path / "log"))
    for name in ("log_records", "allocator_events", "steps"):
        assert pieces.columns(name).to_pylist() == whole.columns(name).to_pylist()


_SAMPLES = ("eager_default_allocator", "session_default_allocator")
_FIELDS = (
    "allocations", "deallocations", "unmatched_deallocations", "untracked_allocations",
    "peak_bytes", "live_at_end_bytes",
)  # fmt: skip


def answers(profile):
    result = explain_memory(profile.columns("allocator_events"), profile.columns("steps"))
    return {a.allocator: {name: getattr(a, name) for name in _FIELDS} for a in result.allocators}


def check(profile, messages):
    expected = Reference(messages)
    events = profile.columns("allocator_events").to_pylist()
    rows = [(e["sequence"], e["allocator"], e["activity"], e["allocation_id"]) for e in events]
    assert rows == expected.events
    outputs = profile.columns("tensor_outputs").to_pylist()
    assert [row["sequence"] for row in outputs if row["is_shared"]] == expected.shared
    records = profile.columns("log_records").to_pylist()
    completes = {r["sequence"]: r["completes"] for r in records if r["completes"] is not None}
    assert completes == expected.completes
    assert len(records) == len(messages)
    if events:
        assert answers(profile) == expected.answers


@each_row("name", _SAMPLES)
def test_real_logs(root, name):
    path = root / "tests" / "data" / "memory_log" / f"{name}.log.gz"
    with peakline.open(str(path)) as profile:
        check(profile, printed_records(path))


_STEPS = st.sampled_from([-6, -3, 0, 1])
_OPS = st.sampled_from(["a", "b"])
_NUMBERS = st.sampled_from([-1, 0, 1, 2, 3])
_ALLOCATORS = st.sampled_from(["cpu", "gpu", ""])
_SIZES = st.integers(0, 1000)
_BUFFERS = st.builds(
    schema.AllocationDescription,
    requested_bytes=_SIZES,
    allocated_bytes=_SIZES,
    allocator_name=_ALLOCATORS,
    allocation_id=_NUMBERS,
)
_TENSORS = st.one_of(
    st.builds(schema.TensorDescription, allocation_description=_BUFFERS),
    st.builds(schema.TensorDescription),
)
_MESSAGES = st.one_of(
    st.builds(schema.MemoryLogStep, step_id=_STEPS),
    st.builds(schema.MemoryLogTensorAllocation, step_id=_STEPS, kernel_name=_OPS, tensor=_TENSORS),
    st.builds(
        schema.MemoryLogTensorDeallocation, allocation_id=_NUMBERS, allocator_name=_ALLOCATORS
    ),
    st.builds(schema.MemoryLogTensorOutput, step_id=_STEPS, kernel_name=_OPS, tensor=_TENSORS),
    st.builds(
        schema.MemoryLogRawAllocation,
        step_id=_STEPS, operation=_OPS, num_bytes=_SIZES, allocation_id=_NUMBERS,
        allocator_name=_ALLOCATORS,
    ),
    st.builds(
        schema.MemoryLogRawDeallocation,
        step_id=_STEPS, operation=_OPS, allocation_id=_NUMBERS, allocator_name=_ALLOCATORS,
        deferred=st.booleans(),
    ),
)  # fmt: skip


@settings(max_examples=200)
@given(messages=st.lists(_MESSAGES, min_size=1, max_size=40))
def test_any_records(tmp_path_factory, messages):
    log = schema.MemoryLog()
    for message in messages:
        kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(message).__name__.removeprefix("MemoryLog"))
        target = getattr(log.record.add(thread_id=1), kind.lower())
        target.CopyFrom(message)
        target.SetInParent()
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(log.SerializeToString())
    with peakline.open(str(path)) as profile:
        check(profile, messages)


EPOCH = 1_795_000_000_000_000_000
DAY = 86_400_000_000_000


def clock(*times):
    return read_clock(np.array(times, np.int64))


def test_zero_is_the_first_record():
    assert clock(EPOCH, EPOCH + 7).time_ps.tolist() == [0, 7000]


def test_time_never_goes_backwards():
    result = clock(EPOCH + 5, EPOCH, EPOCH + 9, EPOCH + 8)
    assert result.time_ps.tolist() == [0, 0, 4000, 4000]
    assert result.behind == 2


def test_a_record_without_a_time_has_that_of_the_one_before():
    result = clock(0, EPOCH, 0, EPOCH + 1, 0)
    assert result.time_ps.tolist() == [0, 0, 0, 1000, 1000]
    assert (result.missing, result.behind) == (3, 0)


def test_without_any_time_the_number_of_the_record_stands_for_it():
    result = clock(0, 0, 0)
    assert result.time_ps.tolist() == [0, 1, 2]
    assert result.numbered
    assert result.missing == 3


def test_a_time_too_far_from_the_first():
    result = clock(EPOCH, EPOCH + 200 * DAY)
    assert result.time_ps.tolist() == [0, (2**63 - 1) // 1000 * 1000]
    assert result.far == 1


@each_row("turn", [DAY, 366 * DAY])
def test_a_clock_without_date_or_year_goes_on(turn):
    # The third was logged by a thread that was late.
    result = clock(turn - 5, 3, turn - 1, 4)
    assert result.time_ps.tolist() == [0, 8000, 8000, 9000]
    assert result.behind == 1


def test_a_log_that_changes_to_times_without_a_year():
    year_less = 300 * DAY
    result = clock(EPOCH, EPOCH + 5, year_less, year_less + 2, EPOCH + 8, year_less + 4)
    assert result.time_ps.tolist() == [0, 5000, 5000, 7000, 8000, 9000]
    assert result.behind == 0


def test_no_records():
    assert read_clock(np.zeros(0, np.int8)).time_ps.tolist() == []
