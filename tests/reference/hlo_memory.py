"""The tables of a program's memory in the simplest way: see `tests.reference.hlo`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.reference.hlo_shapes import MOST_BYTES, bytes_of, part_at, text_of

if TYPE_CHECKING:
    from tests.reference.hlo import Reference

Rows = list[dict[str, Any]]
KINDS = {0: "allocation", 1: "deallocation", 2: "share"}
HOST = 5


def memory_rows(program: Reference) -> tuple[Rows, Rows, dict[str, Any]]:
    """The rows of ``hlo_buffers`` and ``hlo_heap_events``, and the sizes in ``hlo_modules``."""
    assignment = program.proto.buffer_assignment
    values = {value.id: value for value in assignment.logical_buffers}
    buffers = _buffers(program, values)
    events = _events(program, values)
    if not program.proto.HasField("buffer_assignment"):
        return buffers, events, {}
    heaps = _heaps(program, buffers)
    _add_lives(program, buffers, heaps)
    return buffers, events, _sizes(assignment) | _peak(buffers, heaps, program)


def _kind(allocation: Any) -> str:
    if allocation.is_entry_computation_parameter:
        return "parameter"
    if allocation.maybe_live_out:
        return "output"
    if allocation.is_thread_local:
        return "thread-local"
    return "constant" if allocation.is_constant else "temporary"


def _clipped(size: int) -> int:
    return min(max(size, 0), MOST_BYTES)


def _allocations(assignment: Any) -> list[Any]:
    """By number; of several with one number the last."""
    result = {one.index: one for one in assignment.buffer_allocations}
    return [result[number] for number in sorted(result)]


def _sizes(assignment: Any) -> dict[str, int]:
    result: Counter[str] = Counter()
    for one in _allocations(assignment):
        size, kind = _clipped(one.size), _kind(one)
        if one.color == HOST:
            result["host"] += size if kind != "thread-local" else 0
            continue
        name = {"parameter": "argument", "thread-local": "thread_local"}.get(kind, kind)
        if kind != "output":
            result[name] += size
        if one.maybe_live_out:
            result["output"] += size
        if kind == "parameter" and one.is_parameter_aliased_with_output:
            result["alias"] += size
    names = "argument output alias temporary constant thread_local host".split()
    return {f"{name}_bytes": _clipped(result[name]) for name in names}


def _buffers(program: Reference, values: dict[int, Any]) -> Rows:
    last: dict[int, tuple[Any, Any]] = {}
    for allocation in program.proto.buffer_assignment.buffer_allocations:
        for one in allocation.assigned:
            program.losses["hlo_reference"] += one.logical_buffer_id not in values
    for allocation in _allocations(program.proto.buffer_assignment):
        for one in allocation.assigned:
            if one.logical_buffer_id in values:
                # The last place of a value counts, and where that is listed.
                last.pop(one.logical_buffer_id, None)
                last[one.logical_buffer_id] = allocation, one
    # In the order of the file, whatever the order in which places are looked at.
    listed = [
        (number, allocation, one)
        for number, (allocation, one) in last.items()
    ]  # fmt: skip
    file_order = {
        id(one): place
        for place, one in enumerate(
            one
            for allocation in program.proto.buffer_assignment.buffer_allocations
            for one in allocation.assigned
        )
    }
    listed.sort(key=lambda entry: file_order[id(entry[2])])
    return [
        _buffer(program, values[number], allocation, one) | {"buffer_id": row}
        for row, (number, allocation, one) in enumerate(listed)
    ]


def _buffer(program: Reference, value: Any, allocation: Any, place: Any) -> dict[str, Any]:
    row = _definer(program, value)
    index = value.defined_at.shape_index
    shape = None if row is None else part_at(program.instructions[row][2].shape, index)
    kind = _kind(allocation)
    return {
        "native_id": value.id,
        "allocation": allocation.index,
        "offset_bytes": place.offset,
        "bytes": _clipped(value.size),
        "unpadded_bytes": None if shape is None else bytes_of(shape),
        "allocation_bytes": _clipped(allocation.size),
        "memory_space": allocation.color,
        "kind": kind,
        "is_live_out": allocation.maybe_live_out,
        "is_donated": allocation.is_entry_computation_parameter
        and allocation.is_parameter_aliased_with_output,
        "parameter_number": allocation.parameter_number if kind == "parameter" else None,
        "instruction_id": row,
        "shape_index": f"{{{','.join(map(str, index))}}}" if index else "",
        "shape": None if shape is None else text_of(shape),
    }


def _definer(program: Reference, value: Any) -> int | None:
    if not value.HasField("defined_at"):
        return None
    number, name = value.defined_at.instruction_id, value.defined_at.instruction_name
    for row, _, one in program.instructions:
        if one.id == number:
            return row
    for row, _, one in program.instructions:
        if name and one.name == name:
            return row
    return None


# Heaps.


@dataclass
class Replayed:
    """``live`` is in bytes after each event; ``spans`` are by value the event that begins it and
    the one that frees it. ``at_peak`` are the values that hold memory after the first event with
    the most of it.
    """

    live: list[int] = field(default_factory=list)
    strange: int = 0
    spans: dict[int, list[int]] = field(default_factory=dict)
    at_peak: list[int] = field(default_factory=list)


def replay(events: Any, size: dict[int, int]) -> Replayed:
    """Go through the events; values without a ``size`` have no place."""
    result, above = Replayed(), dict[int, int]()
    users: Counter[int] = Counter()
    total = peak = 0

    def piece(number: int) -> int:
        while above.get(number, number) != number:
            number = above[number]
        return number

    for at, event in enumerate(events):
        number, other = event.buffer_id, event.share_with_canonical_id
        root = piece(number)
        if number not in size or event.kind not in KINDS or (event.kind == 2 and other not in size):
            result.strange += 1
        elif event.kind == 1 and users[root]:
            users[root] -= 1
            total -= 0 if users[root] else size[root]
            result.spans.setdefault(number, [at, at])[1] = at
        elif event.kind == 2 or (event.kind == 0 and not users[root]):
            root = piece(other) if event.kind == 2 else number
            above[number] = root
            users[root] += 1
            total += size[root] if users[root] == 1 else 0
            result.spans[number] = [at, len(events)]
        else:
            result.strange += 1
        result.live.append(total)
        if total > peak:
            peak = total
            newest: dict[int, tuple[int, int]] = {}
            for value, (begin, end) in result.spans.items():
                if end == len(events) and users[piece(value)]:
                    newest[piece(value)] = max(newest.get(piece(value), (-1, -1)), (begin, value))
            result.at_peak = [value for _, value in newest.values()]
    return result


def _events(program: Reference, values: dict[int, Any]) -> Rows:
    traces = program.proto.buffer_assignment.heap_simulator_traces
    count = sum(len(trace.events) for trace in traces)
    size = {n: min(_clipped(v.size), MOST_BYTES // max(count, 1)) for n, v in values.items()}
    rows = []
    for number, trace in enumerate(traces):
        replayed = replay(trace.events, size)
        program.losses["hlo_heap"] += replayed.strange
        for at, event in enumerate(trace.events):
            kind = KINDS.get(event.kind)
            rows.append({
                "trace": number,
                "sequence": at,
                "kind": kind,
                "buffer": event.buffer_id,
                "shared_with": event.share_with_canonical_id if kind == "share" else None,
                "computation": event.computation_name or None,
                "instruction": event.instruction_name or None,
                "live_bytes": replayed.live[at],
            })  # fmt: skip
    return rows


def _heaps(program: Reference, buffers: Rows) -> list[tuple[Any, Replayed]]:
    """The heaps of temporaries in main memory."""
    row_of = {row["native_id"]: row for row in buffers}
    result = []
    for trace in program.proto.buffer_assignment.heap_simulator_traces:
        first = next((e.buffer_id for e in trace.events if e.buffer_id in row_of), None)
        if first is None:
            continue
        if row_of[first]["memory_space"] or row_of[first]["kind"] != "temporary":
            continue
        most = MOST_BYTES // max(len(trace.events), 1)
        size = {number: min(row["bytes"], most) for number, row in row_of.items()}
        result.append((trace, replay(trace.events, size)))
    return result


def _lasting(program: Reference, buffers: Rows, heaps: list[tuple[Any, Replayed]]) -> Rows:
    """Of each allocation in main memory whose contents over time are not known the value that
    stands for it: the largest, of several the last defined.
    """
    row_of = {row["native_id"]: row for row in buffers}
    covered = {
        row_of[event.buffer_id]["allocation"]
        for trace, _ in heaps
        for event in trace.events
        if event.buffer_id in row_of
    }
    by_allocation: dict[int, Rows] = {}
    for row in buffers:
        if row["memory_space"] == 0 and row["kind"] != "thread-local":
            by_allocation.setdefault(row["allocation"], []).append(row)
    return [
        max(
            rows,
            key=lambda r: (r["bytes"], program.order.get(r["instruction_id"], -1), r["buffer_id"]),
        )
        for number, rows in by_allocation.items()
        if number not in covered
    ]


def _peak(buffers: Rows, heaps: list[tuple[Any, Replayed]], program: Reference) -> dict[str, Any]:
    lasting = _lasting(program, buffers, heaps)
    peak = sum(row["allocation_bytes"] for row in lasting)
    peak += sum(max([0, *heap.live]) for _, heap in heaps)
    if any(row["kind"] == "temporary" for row in lasting) or len(heaps) > 1:
        by = "allocations"
    else:
        by = "heap trace" if heaps else "no temporaries"
    return {"peak_bytes": _clipped(peak), "peak_found_by": by}


def _add_lives(program: Reference, buffers: Rows, heaps: list[tuple[Any, Replayed]]) -> None:
    """Say of each value when it is live and whether it is so at the peak."""
    end_of_all = max(program.order.values(), default=0)
    standing = {row["buffer_id"] for row in _lasting(program, buffers, heaps)}
    named: dict[str, int] = {}
    for row, _, one in program.instructions:
        named.setdefault(one.name, program.order.get(row, -1))
    row_of = {row["native_id"]: row for row in buffers}
    for row in buffers:
        start = 0
        if row["kind"] == "output" and row["instruction_id"] is not None:
            start = program.order.get(row["instruction_id"], -1)
        is_known = row["memory_space"] == 0 and row["kind"] != "thread-local" and start >= 0
        row["span"] = (start, end_of_all) if is_known else None
    at_peak = set(standing)
    for trace, heap in heaps:
        names = [event.instruction_name for event in trace.events]
        places = [named.get(name, -1) if name else -1 for name in names] + [-1]
        for number, (begin, end) in heap.spans.items():
            stop = _used_last(program, trace.events, places, end, row_of[number])
            span = places[begin], end_of_all if stop < 0 else stop
            row_of[number]["span"] = span if span[0] >= 0 else None
        at_peak |= {row_of[number]["buffer_id"] for number in heap.at_peak}
    for row in buffers:
        span = row.pop("span")
        row["start"], row["end"] = span or (None, None)
        row["is_live_at_peak"] = row["buffer_id"] in at_peak if span else None


def _used_last(
    program: Reference, events: Any, places: list[int], end: int, row: dict[str, Any]
) -> int:
    """The place of the last user of a value that event ``end`` frees, -1 where none does."""
    if end == len(events):
        return -1
    begun = [
        (at, place) for at, place in enumerate(places[:-1]) if events[at].kind != 1 and place >= 0
    ]
    low = max((place for at, place in begun if at < end), default=-1)
    after = [place for at, place in begun if at > end]
    high = max(min(after, default=max(program.order.values()) + 1), low + 1)
    users = []
    if row["instruction_id"] is not None and not row["shape_index"]:
        _, computation, _ = program.instructions[row["instruction_id"]]
        users = [
            program.order.get(other, -1)
            for other, inside, one in program.instructions
            if inside == computation
            and any(
                program.row_of.get((computation, number)) == row["instruction_id"]
                for number in one.operand_ids
            )
        ]
    return max(places[end], low, *(place for place in users if place < high), -1)
