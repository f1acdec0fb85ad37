import re

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.sources.memory_logs import Reference, printed_records

import peakline
from peakline import schema
from peakline.findings.memory_answer import explain_memory

_SAMPLES = ("eager_default_allocator", "session_default_allocator")
_FIELDS = (
    "allocations", "deallocations", "unmatched_deallocations", "untracked_allocations",
    "peak_bytes", "live_at_end_bytes",
)  # fmt: skip


def answers(profile):
    found = explain_memory(profile.columns("allocator_events"), profile.columns("steps"))
    return {a.allocator: {name: getattr(a, name) for name in _FIELDS} for a in found.allocators}


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
