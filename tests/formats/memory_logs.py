"""Memory logs made by hand, and a slow answer to compare the fast one with."""

import gzip
import re
from collections import defaultdict
from dataclasses import dataclass, field

from google.protobuf import text_format

import peakline
from peakline import schema
from peakline.record import MemoryLog, Tensor

_LINE = re.compile(rb"__LOG_MEMORY__ (MemoryLog\w+) \{(.*)\}\s*$")
_TIMES = ("time_ps", "time_ns", "thread")


def opened(folder, write, *, text=False, name="log"):
    """The profile of the log that ``write`` writes."""
    path = folder / name
    with MemoryLog(path, text=text) as log:
        write(log)
    return peakline.open(str(path))


def tensor(number, size=100, allocator="cpu", **more):
    fields = {"data_type": "float", "shape": (5, 5), "requested_bytes": size} | more
    return Tensor(allocator_name=allocator, allocation_id=number, **fields)


def printed_records(path):
    """The messages of a log, line by line, read by protobuf's own text format."""
    result = []
    with gzip.open(path) as lines:
        for line in lines:
            if match := _LINE.search(line):
                message = getattr(schema, match[1].decode())()
                text_format.Parse(re.sub(rb"^ goo\.gle/debug\w+\s+", b"", match[2]), message)
                result.append(message)
    return result


@dataclass
class _Life:
    """One process's allocator: every id it gave out, and the bytes of what is live."""

    used: set = field(default_factory=set)
    live: dict = field(default_factory=dict)


class Reference:
    """The buffers of a list of messages, followed one record after the other in plain Python.

    ``events`` are the rows expected of allocator_events, ``shared`` the outputs whose buffer was
    there before, ``answers`` the counts and the peak per allocator.
    """

    def __init__(self, messages):
        self.completes = _completions(messages)
        self.events = []
        self.shared = []
        self.answers = defaultdict(
            lambda: {
                "allocations": 0, "deallocations": 0, "unmatched_deallocations": 0,
                "untracked_allocations": 0, "peak_bytes": 0, "live_at_end_bytes": 0,
            }
        )  # fmt: skip
        self._lives = defaultdict(lambda: [_Life()])
        self._outputs = {}
        for sequence, message in enumerate(messages):
            if sequence not in self.completes:
                self._record(sequence, type(message).__name__.removeprefix("MemoryLog"), message)

    def _record(self, sequence, kind, message):
        if kind == "Step":
            return
        buffer = message
        if kind in {"TensorAllocation", "TensorOutput"}:
            if not message.tensor.HasField("allocation_description"):
                return
            buffer = message.tensor.allocation_description
        name, number = buffer.allocator_name, buffer.allocation_id
        if kind == "TensorOutput":
            self._output(sequence, message, name, number)
        elif kind.endswith("Deallocation"):
            self._free(sequence, name, number)
        else:
            known_op = message.kernel_name if kind[0] == "T" else message.operation
            op = None if message.step_id == -6 else known_op
            size = _size(buffer) if kind[0] == "T" else message.num_bytes
            self._begin(sequence, name, number, size, self._life_for(name, number), op)

    def _life_for(self, name, number):
        lives = self._lives[name]
        unused = [i for i, life in enumerate(lives) if number not in life.used]
        if number > 0 and not unused:
            lives.append(_Life())
            return len(lives) - 1
        return max(unused) if number > 0 else len(lives) - 1

    def _begin(self, sequence, name, number, size, at, op, *, is_output=False):
        life = self._lives[name][at]
        self._outputs[name, number, at] = (op, is_output)
        answer = self._row(sequence, name, at, "allocation", number)
        answer["allocations"] += 1
        if number > 0:
            life.used.add(number)
            life.live[number] = size
        else:
            answer["untracked_allocations"] += 1
        self._measure(answer, life)

    def _output(self, sequence, message, name, number):
        if number <= 0:
            return
        lives = self._lives[name]
        for at in reversed(range(len(lives))):
            if number in lives[at].live:
                latest = max(i for i, life in enumerate(lives) if number in life.used)
                # What is remembered of an id is its latest buffer.
                op, was_output = self._outputs[name, number, latest]
                if was_output or op not in {None, message.kernel_name}:
                    self.shared.append(sequence)
                self._outputs[name, number, latest] = (op, True)
                return
        size = _size(message.tensor.allocation_description)
        self._begin(
            sequence, name, number, size, len(lives) - 1, message.kernel_name, is_output=True
        )

    def _free(self, sequence, name, number):
        lives = self._lives[name]
        at = max((i for i, life in enumerate(lives) if number in life.live), default=len(lives) - 1)
        answer = self._row(sequence, name, at, "deallocation", number)
        answer["deallocations"] += 1
        if number <= 0:
            answer["untracked_allocations"] += 1
        elif lives[at].live.pop(number, None) is None:
            answer["unmatched_deallocations"] += 1
        self._measure(answer, lives[at])

    def _row(self, sequence, name, at, activity, number):
        label = f"{name} ({at + 1})" if at else name
        self.events.append((sequence, label, activity, number if number > 0 else None))
        return self.answers[label]

    def _measure(self, answer, life):
        total = sum(life.live.values())
        answer["peak_bytes"] = max(answer["peak_bytes"], total)
        answer["live_at_end_bytes"] = total


def _size(buffer):
    return buffer.allocated_bytes or buffer.requested_bytes


def _completions(messages):
    """By second record of a deferred deallocation the first: the same id, else the same work."""
    raw = [
        (sequence, message)
        for sequence, message in enumerate(messages)
        if type(message).__name__ == "MemoryLogRawDeallocation"
    ]
    result = {}

    def match(key):
        for sequence, message in raw:
            if message.deferred or sequence in result or key(message) is None:
                continue
            for first, other in raw:
                waits = other.deferred and first < sequence and first not in result.values()
                if waits and key(other) == key(message):
                    result[sequence] = first
                    break

    match(lambda m: (m.allocator_name, m.allocation_id) if m.allocation_id > 0 else None)
    match(lambda m: (m.allocator_name, m.operation, m.step_id))
    return result
