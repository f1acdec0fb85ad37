"""Requests that waited for memory, in recordings of four threads with and without enough of it."""

from pathlib import Path

import numpy as np
import pytest

import peakline
from peakline.memory.fit.waits import LATE_PS, waits_of
from reference.xspace_builder import SpaceBuilder

DATA = Path(__file__).parents[1] / "data" / "memory_waits"


@pytest.fixture
def tight():
    with peakline.open(DATA / "limit_24.xplane.pb.gz") as profile:
        yield profile


def test_ops_that_waited_for_other_threads_are_found(tight):
    found = waits_of(tight)
    assert len(found) > 20
    assert {one.allocator for one in found} == {"bfc_cpu_allocator_for_gpu"}
    assert min(one.wait_ps for one in found) > LATE_PS
    events = tight.columns("allocator_events")
    for one in found:
        assert events.names("activity")[one.row] == "allocation"
        assert one.begin_ps + one.wait_ps == events.array("time_ps")[one.row]
        # Just before it was served, another thread freed memory.
        earlier = events.array("time_ps")[: one.row]
        freed = np.array(events.names("activity").to_list()[: one.row]) == "deallocation"
        assert ((earlier > one.begin_ps) & freed).any()


def test_the_finding_says_how_long_and_for_what(tight):
    (finding,) = [one for one in tight.time().findings if one.kind == "allocation_wait"]
    assert finding.severity == "warning"
    assert "waited for memory that other threads held" in finding.title
    evidence = finding.evidence
    assert evidence["count"] == len(waits_of(tight))
    assert 0.05 < evidence["share"] <= 1
    assert len(finding.rows) == 20
    waited = [row["wait_ps"] for row in finding.rows]
    assert waited == sorted(waited, reverse=True)


def test_nothing_waits_where_there_is_enough():
    with peakline.open(DATA / "limit_65536.xplane.pb.gz") as profile:
        assert waits_of(profile) == []
        assert "allocation_wait" not in {one.kind for one in profile.time().findings}


MEMORY = {
    "allocator_name": "GPU_0_bfc", "bytes_reserved": 0, "fragmentation": 0.0,
    "peak_bytes_in_use": 0, "tf_op": "MatMul", "data_type": 1, "region_type": "temp",
    "tensor_shape": "[8]", "bytes_limit": 0,
}  # fmt: skip


def memory(line, kind, at, address, size, in_use, limit=4096):
    line.event(
        kind,
        at,
        0,
        MEMORY
        | {
            "bytes_allocated": in_use,
            "bytes_available": limit - in_use,
            "requested_bytes": size,
            "allocation_bytes": size,
            "addr": address,
        },
    )


def recorded(tmp_path, late_ps, room, *, busy_ps=0):
    """One thread holds 2,048 bytes; another op, which works for ``busy_ps`` first, needs as much
    and gets it when they are freed.
    """
    builder = SpaceBuilder()
    host = builder.host()
    holder, waiter = host.line("holder", 0), host.line("waiter", 0)
    memory(holder, "MemoryAllocation", 100, 4096, 2048, 2048, room)
    memory(holder, "MemoryDeallocation", 500 + late_ps - 10, 4096, 2048, 0, room)
    waiter.event("MatMul", 500, late_ps + 1000)
    if busy_ps:
        waiter.event("Transpose", 500, busy_ps)
        waiter.event("Inside", 510, busy_ps - 20)
    memory(waiter, "MemoryAllocation", 500 + late_ps, 4096, 2048, 2048, room)
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(builder.space.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("late_ps", "room", "waits"),
    [(2 * LATE_PS, 2048, 1), (2 * LATE_PS, 8192, 0), (LATE_PS // 2, 2048, 0)],
)
def test_late_is_a_wait_only_where_there_was_no_room(tmp_path, late_ps, room, waits):
    with peakline.open(recorded(tmp_path, late_ps, room)) as profile:
        assert len(waits_of(profile)) == waits


@pytest.mark.parametrize(
    ("busy_ps", "wait_ps"), [(LATE_PS + 5, [LATE_PS + 95]), (LATE_PS + 101, []), (2 * LATE_PS, [])]
)
def test_a_thread_that_works_does_not_wait(tmp_path, busy_ps, wait_ps):
    path = recorded(tmp_path, 2 * LATE_PS + 100, 2048, busy_ps=busy_ps)
    with peakline.open(path) as profile:
        assert [one.wait_ps for one in waits_of(profile)] == wait_ps
