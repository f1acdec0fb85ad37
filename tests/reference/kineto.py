"""PyTorch's traces (Kineto), read slowly and plainly: what the devices did, the steps, the ops.

What an event is, its category says (``cat``); on which device, its arguments do. The pid of an
event is the id of a process on the host, which may be any number, a device's too. Sources:
ActivityType.h and output_json.cpp of pytorch/kineto (libkineto), and ``deviceTypeFromActivity`` in
kineto_shim.cpp of pytorch/pytorch. Times are whole picoseconds, from the digits of the file.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

_WORK = {
    "kernel", "concurrent_kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events", "hpu_op",
    # Before PyTorch 1.9:
    "memcpy", "memset",
}  # fmt: skip
_HOST = {
    "cpu_op", "user_annotation", "external_correlation", "cuda_runtime", "cuda_driver",
    "cpu_instant_event", "python_function", "overhead", "mtia_runtime", "glow_runtime",
    "xpu_runtime", "xpu_driver", "collective_comm", "privateuse1_runtime", "privateuse1_driver",
    "xpu_sync", "trace", "operator", "runtime",
}  # fmt: skip
_NO_WORK = {"gpu_user_annotation", "cuda_sync", "cuda_event", "cuda_profiler_range", "mtia_insight"}
"""On a device's rows, and nothing that the device does."""
_COPIES = {"gpu_memcpy", "memcpy"}
_NOT_KERNELS = {*_COPIES, "gpu_memset", "memset"}
_COMMUNICATION = re.compile(r"(?i)nccl|rccl|oneccl|hccl|cross_device_reduce|allreduce|all_reduce")
_DIRECTION = re.compile(r"\b([HDP])to([HDP])\b")
_STEP = re.compile(r"ProfilerStep#(\d+)")
# What PyTorch and its libraries annotate themselves: ``Optimizer.step#SGD.step``, ``nccl:send``,
# ``enumerate(DataLoader)#...``, ``FSDP::...``, modules that are parallel, compiled regions.
_LIBRARY = re.compile(r".*[#:].*|.*DataParallel\..*|Torch-Compiled Region.*|TorchDynamo.*")


@dataclass(frozen=True)
class Event:
    """An event with a length. ``thread`` is (pid, tid), as texts."""

    name: str
    category: str
    thread: tuple[str, str]
    start_ps: int
    end_ps: int
    args: dict[str, Any]

    def holds(self, other: Event) -> bool:
        """Whether the other one lies within it, on the same thread."""
        is_within = self.start_ps <= other.start_ps and other.end_ps <= self.end_ps
        return self.thread == other.thread and self is not other and is_within


@dataclass(frozen=True)
class DeviceWork:
    """What one device did, each moment once; copies also by direction, such as ``HtoD``."""

    start_ps: int
    end_ps: int
    busy_ps: int
    communication_ps: int
    copy_ps: int
    copies_ps: dict[str, int]

    @property
    def idle_ps(self) -> int:
        """Time without work, from the first to the last."""
        return self.end_ps - self.start_ps - self.busy_ps


@dataclass(frozen=True)
class Step:
    """A step that the program marked; ``number`` is None where the mark has none."""

    name: str
    number: int | None
    thread: tuple[str, str]
    start_ps: int
    end_ps: int
    is_cut_off: bool = False

    @property
    def shown(self) -> str:
        """Name and number, where the name does not hold it."""
        has_number = self.number is not None and not _STEP.fullmatch(self.name)
        return f"{self.name} {self.number}" if has_number else self.name


class Trace:
    """One trace: a file's content, as text or bytes, compressed or not."""

    def __init__(self, content: bytes | str) -> None:
        if isinstance(content, bytes):
            text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()
        else:
            text = content
        self.records, root = _records(text)
        self.base_ns = int(root.get("baseTimeNanoseconds", 0))
        self.events = _events(self.records)
        """In order of time, the longest of equal starts first."""
        timed = [_ps(record.get("ts")) for record in self.records if record.get("ph") != "M"]
        self.first_ps = min((time for time in timed if time is not None), default=0)
        """The first time that the file names, of anything."""

    @classmethod
    def of(cls, path: Path) -> Trace:
        """The trace in a file."""
        return cls(path.read_bytes())

    def work(self) -> dict[tuple[str, str], list[Event]]:
        """What devices did, by device: (pid, device).

        A kernel's device is ``args.device``, and without it the pid, which Kineto makes the same.
        Where the pid differs, another process' trace was merged: its device 0 is another one.
        """
        result = defaultdict(list)
        for event in self.events:
            if _is_work(event):
                pid = event.thread[0]
                result[pid, str(event.args.get("device", pid))].append(event)
        return dict(result)

    def devices(self) -> dict[tuple[str, str], DeviceWork]:
        """How long each device was busy, by (pid, device)."""
        return {device: _work_of(events) for device, events in self.work().items()}

    def kernels(self) -> dict[str, tuple[int, int]]:
        """How often each kernel ran, and for how long in all, over all devices."""
        result: dict[str, tuple[int, int]] = {}
        for event in (event for events in self.work().values() for event in events):
            if event.category.lower() not in _NOT_KERNELS:
                count, total = result.get(event.name, (0, 0))
                result[event.name] = count + 1, total + event.end_ps - event.start_ps
        return result

    def ops(self) -> dict[str, tuple[int, int, int]]:
        """Of each op of the host: how often it ran, its total and its self time.

        The self time is that without the ops directly in it, on its own thread. An op all of whose
        work is one op of its name is one with it.
        """
        result: dict[str, tuple[int, int, int]] = {}
        for own in _by_thread(event for event in self.events if _is_op(event)).values():
            open_ops: list[Event] = []
            self_ps = {id(op): op.end_ps - op.start_ps for op in own}
            within: dict[int, list[Event]] = defaultdict(list)
            for op in own:
                while open_ops and not open_ops[-1].holds(op):
                    open_ops.pop()
                if open_ops:
                    self_ps[id(open_ops[-1])] -= op.end_ps - op.start_ps
                    within[id(open_ops[-1])].append(op)
                open_ops.append(op)
            # From the innermost ones on, which are last.
            repeats = set()
            for op in reversed(own):
                if [one.name for one in within[id(op)]] == [op.name]:
                    [repeat] = within[id(op)]
                    self_ps[id(op)] += self_ps[id(repeat)]
                    repeats.add(id(repeat))
            for op in own:
                if id(op) in repeats:
                    continue
                count, total, alone = result.get(op.name, (0, 0, 0))
                length = op.end_ps - op.start_ps
                result[op.name] = count + 1, total + length, alone + self_ps[id(op)]
        return result

    def steps(self) -> list[Step]:
        """The steps that the program marked, in order of time.

        ``ProfilerStep#N``, else events with ``step_num``, else what ``record_function`` named more
        than once around ops.
        """
        host = [event for event in self.events if _is_host(event)]
        marks = [event for event in host if _STEP.fullmatch(event.name)]
        marks = marks or [event for event in host if "step_num" in event.args]
        marks = sorted(marks or _by_hand(host), key=lambda mark: (mark.start_ps, -mark.end_ps))
        by_name = defaultdict(list)
        for mark in marks:
            by_name[_STEP.sub("ProfilerStep", mark.name), mark.thread].append(mark)
        last = [own[-1] for own in by_name.values() if _is_cut_off(own, host)]
        return [
            Step(mark.name, _number(mark), mark.thread, mark.start_ps, mark.end_ps, mark in last)
            for mark in marks
        ]


def union(spans: list[tuple[int, int]]) -> int:
    """How long at least one of the spans lasts."""
    total, reached = 0, None
    for start, end in sorted(spans):
        begin = start if reached is None else max(start, reached)
        total += max(end - begin, 0)
        reached = end if reached is None else max(end, reached)
    return total


def _records(text: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The records of a trace, those that are whole, and what stands beside them."""
    try:
        result = json.loads(text, parse_float=Decimal)
    except ValueError:
        result = {}
        base = re.search(r'"baseTimeNanoseconds": *(\d+)', text)
        if base:
            result["baseTimeNanoseconds"] = int(base[1])
        result["traceEvents"] = _whole(
            text, text.index("[", max(text.find('"traceEvents"'), 0)) + 1
        )
    if isinstance(result, list):
        result = {"traceEvents": result}
    return [record for record in result["traceEvents"] if isinstance(record, dict)], result


def _whole(text: str, place: int) -> list[dict[str, Any]]:
    decoder = json.JSONDecoder(parse_float=Decimal)
    result = []
    while True:
        place = next(
            (at for at in range(place, len(text)) if text[at] not in " \t\r\n,"), len(text)
        )
        try:
            record, place = decoder.raw_decode(text, place)
        except ValueError:
            return result
        result.append(record)


def _ps(value: Any) -> int | None:
    """Microseconds as picoseconds; None for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    try:
        return int(Decimal(value) * 10**6)
    except (InvalidOperation, OverflowError, ValueError):
        return None


def _events(records: list[dict[str, Any]]) -> list[Event]:
    """Complete events, and begins with the end that belongs to them; in order of time."""
    result = []
    begun: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    timed = []
    for record in records:
        start = _ps(record.get("ts"))
        if start is not None and record.get("ph") in ("X", "B", "E"):
            timed.append((start, record))
    for start, record in sorted(timed, key=lambda pair: pair[0]):
        thread = str(record.get("pid", "")), str(record.get("tid", ""))
        if record["ph"] == "X":
            end = start + max(_ps(record.get("dur")) or 0, 0)
            result.append(_event(record, thread, start, end))
        elif record["ph"] == "B":
            begun[thread].append((start, record))
        elif begun[thread]:
            start_of, record_of = begun[thread].pop()
            result.append(_event(record_of, thread, start_of, start))
    return sorted(result, key=lambda event: (event.start_ps, -event.end_ps))


def _event(record: dict[str, Any], thread: tuple[str, str], start: int, end: int) -> Event:
    args = record.get("args")
    args = args if isinstance(args, dict) else {}
    return Event(record.get("name", ""), record.get("cat", ""), thread, start, end, args)


def _is_work(event: Event) -> bool:
    """Whether a device did it. Of a category that nobody knows, device and stream say so."""
    category = event.category.lower()
    if category == "mtia_ccp_events" and "wait_on_stream" in event.args:
        return False
    if category in _WORK:
        return True
    is_known = not category or category in _HOST or category in _NO_WORK
    return not is_known and "device" in event.args and "stream" in event.args


def _is_host(event: Event) -> bool:
    return not _is_work(event) and event.category.lower() not in {*_NO_WORK, "mtia_ccp_events"}


def _is_op(event: Event) -> bool:
    is_mark = "#" in event.name or event.name.startswith("[")
    return event.category == "cpu_op" or (event.category == "Operator" and not is_mark)


def _work_of(events: list[Event]) -> DeviceWork:
    copies = [event for event in events if event.category.lower() in _COPIES]
    return DeviceWork(
        min(event.start_ps for event in events),
        max(event.end_ps for event in events),
        _length(events),
        _length([event for event in events if _communicates(event)]),
        _length(copies),
        {
            direction: _length([event for event in copies if _direction(event) == direction])
            for direction in {_direction(event) for event in copies}
        },
    )


def _length(events: list[Event]) -> int:
    return union([(event.start_ps, event.end_ps) for event in events])


def _communicates(event: Event) -> bool:
    is_copy = event.category.lower() in _NOT_KERNELS
    named = "Collective name" in event.args or _COMMUNICATION.search(event.name)
    return bool(named) and not is_copy


def _direction(event: Event) -> str:
    """Such as HtoD, from the name or from what ROCm says beside it; empty where neither says it."""
    result = _DIRECTION.search(event.name) or _DIRECTION.search(str(event.args.get("kind", "")))
    return result[0] if result else ""


def _by_thread(events: Any) -> dict[tuple[str, str], list[Event]]:
    result = defaultdict(list)
    for event in events:
        result[event.thread].append(event)
    return result


def _by_hand(host: list[Event]) -> list[Event]:
    """Annotations of the program itself: around ops, outermost, of one name more than once."""
    ops = _by_thread(event for event in host if _is_op(event))
    result = []
    for own in _by_thread(event for event in host if event.category == "user_annotation").values():
        candidates = [event for event in own if not _LIBRARY.fullmatch(event.name)]
        result += [
            event
            for event in candidates
            if any(event.holds(op) for op in ops.get(event.thread, []))
            and not any(other.holds(event) for other in candidates)
        ]
    names = [(event.name, event.thread) for event in result]
    return [event for event in result if names.count((event.name, event.thread)) > 1]


def _is_cut_off(marks: list[Event], host: list[Event]) -> bool:
    """Whether the last of the marks holds nothing, or lacks what each of at least two before has.

    A single step before it is no rule: the first one often does something once.
    """
    *before, last = [_names_in(mark, host) for mark in marks]
    if not last:
        return bool(before) and all(before)
    return len(before) > 1 and bool(set.intersection(*before) - last)


def _names_in(mark: Event, host: list[Event]) -> set[str]:
    """The ops and annotations directly in a mark, by name."""
    categories = ("cpu_op", "Operator", "user_annotation")
    inside = [event for event in host if mark.holds(event) and event.category in categories]
    return {event.name for event in inside if not any(other.holds(event) for other in inside)}


def _number(mark: Event) -> int | None:
    result = _STEP.fullmatch(mark.name)
    if result:
        return int(result[1])
    number = mark.args.get("step_num")
    return None if number is None else int(number)
