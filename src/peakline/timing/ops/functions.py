"""Which functions of the program the time of threads and devices goes by: its own, not those of
libraries.

- A thread's time is that of the function that runs on it: what it calls of a framework or a library
  is its self time, what its own functions below it take is not.
- An op of a backward pass is of the function that ran the op whose gradient it computes
  (`peakline.trace.autograd`), a kernel or copy of the function that launched it.
- An instruction of a program of XLA is of the function that it was traced from, by the call stack
  in its metadata; the function that ran the program only waits for it.
- What another thread runs for a function that is itself still running is in that function's time
  already: it waits.
- What a device does for a thread without frames, as those of executors, is of the function that
  handed that thread its work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.tables.once import once
from peakline.timing.op_stats import DEVICE, HOST, joined_runs
from peakline.timing.ops.device import device_executions, framework_executions, launching_runs
from peakline.timing.ops.host import host_executions
from peakline.timing.ops.names import IDLE
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.trace.autograd import autograd_of
from peakline.trace.distribution import distinct
from peakline.trace.events import nesting_of, trace_of
from peakline.trace.frames import frame_of, has_name, whose_file
from peakline.trace.intervals import Intervals, covered, union
from peakline.trace.links import contexts_of, links_of

_LARGEST = 64 << 20
"""Bytes of programs that are looked through for call stacks."""
_HANDED_ON = 8
"""So often work is followed from one thread to the next."""


class Function(NamedTuple):
    """A function of the program. ``line`` is the one on which it begins; of one that only programs
    of XLA name, the line in it that most of its time comes from. ``name`` is empty where the file
    and the line are all that is known.
    """

    name: str
    file: str
    line: int


_NONE = Function("", "", 0)
Chain = tuple[Function, ...]
"""A function and those that called it, the innermost first, each once."""


@dataclass(frozen=True)
class FunctionTime:
    """The time of one function of the program on one side (host or device), in ps.

    ``self_ps`` is its own and that of the libraries it calls, ``total_ps`` with the program's
    functions that it calls, each moment once however often it calls itself. ``occurrences`` is how
    often it was called; on a device, of one of a program of XLA and of what runs in none, how many
    ops ran in the function itself. What runs in none has the empty function and file.
    """

    side: str
    function: str
    file: str
    line: int
    occurrences: int
    total_ps: int
    self_ps: int


@dataclass(frozen=True, eq=False)
class _Work:
    """Executions and how long each took. ``number`` is of each the place in ``keys`` (program and
    name of an instruction of XLA), -1 for none.
    """

    event: Int64Array
    spent: Int64Array
    number: Int64Array
    keys: Sequence[tuple[int, str]]


@dataclass(frozen=True, eq=False)
class _Part:
    """Executions that belong to the first of ``chain``, or without one of the calls ``around``
    them: how long each took, and when it began.
    """

    chain: Chain
    around: Chain
    spent: Int64Array
    start: Int64Array


@dataclass
class _Sums:
    """The times of one side by function."""

    own: Counter[Function] = field(default_factory=Counter)
    total: Counter[Function] = field(default_factory=Counter)
    runs: Counter[Function] = field(default_factory=Counter)

    def add(self, part: _Part, frames: _Frames | None = None) -> Function:
        """Add the times of ``part``; the function that they belong to. A function that is one of
        ``frames`` and runs at the moment, elsewhere than around it, has them already.
        """
        owner = (part.chain or part.around or (_NONE,))[0]
        for function in dict.fromkeys((owner, *part.chain, *part.around)):
            spent = int(part.spent.sum())
            if frames is not None and function not in part.around:
                spent -= int(part.spent[frames.runs_at(function, part.start)].sum())
            self.total[function] += spent
            self.own[owner] += spent if function == owner else 0
        return owner

    def rows(self, side: str, lines: dict[Function, int]) -> Iterator[FunctionTime]:
        for one, total in self.total.items():
            line = lines.get(one, one.line)
            runs, own = self.runs[one], self.own[one]
            if total or runs:
                yield FunctionTime(side, one.name, one.file, line, runs, total, own)


@once
def function_times(profile: Profile) -> tuple[FunctionTime, ...]:
    """The time of the program's own functions, devices first and the most self time first; nothing
    where no function of its own is recorded.

    Raises InputError when the profile cannot be read.
    """
    frames = _Frames(profile)
    stacks = _Stacks(profile, frames.functions)
    device, host = _of_devices(profile, frames, stacks), _of_host(profile, frames, stacks)
    rows = [*device.rows(DEVICE, stacks.lines), *host.rows(HOST, stacks.lines)]
    if not any(row.file for row in rows):
        return ()
    rows.sort(key=lambda one: (one.function, one.file, one.line))
    return tuple(sorted(rows, key=lambda one: (one.side != DEVICE, -one.self_ps, -one.total_ps)))


class _Frames:
    """The calls of the program's functions on threads: ``event`` are their places in the trace,
    ``chain`` per call which of ``chains`` runs.

    Functions without a name of their own, as those of comprehensions, are part of the one around
    them.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        trace, nesting = trace_of(profile), nesting_of(profile)
        own = [_own(name) for name in trace.name.values]
        is_named = np.array([*(one is not None and has_name(one.name) for one in own), False])
        codes = trace.name.codes
        event = np.flatnonzero(np.array([*(one is not None for one in own), False])[codes])
        if not is_named[codes[event]].all():
            outer = nesting.around(event, is_named[codes])
            event = event[is_named[codes[event]] | (outer < 0)]
        self.event: Int64Array = event
        self.is_own = np.zeros(trace.size, np.bool_)
        self.is_own[event] = True
        self.chains: list[Chain] = []
        self.chain = self._chains(own)
        self._spans: dict[Function, Intervals] = {}
        self.functions = frozenset(chain[0] for chain in self.chains)

    def _chains(self, own: Sequence[Function | None]) -> Int64Array:
        above = nesting_of(self._profile).around(self.event, self.is_own)
        parent = np.where(above >= 0, np.searchsorted(self.event, above), -1)
        result = np.full(self.event.size, -1, np.int64)
        known: dict[tuple[int, int], int] = {}
        numbers: dict[Chain, int] = {}
        code = trace_of(self._profile).name.codes[self.event]
        # Whoever calls stands before what is called.
        for place, (name, caller) in enumerate(zip(code.tolist(), parent.tolist(), strict=True)):
            key = name, int(result[caller]) if caller >= 0 else -1
            if key not in known:
                function = own[name] or _NONE
                others = self.chains[key[1]] if key[1] >= 0 else ()
                chain = (function, *(one for one in others if one != function))
                known[key] = numbers.setdefault(chain, len(numbers))
                if known[key] == len(self.chains):
                    self.chains.append(chain)
            result[place] = known[key]
        return result

    def around(self, events: AnyArray, *, handed_on: bool = False) -> Int64Array:
        """Which of ``chains`` runs each of ``events`` (-1 for none) on its thread, or on the one
        that handed the work to it; -1 where none does.
        """
        result = np.full(events.size, -1, np.int64)
        at = events.astype(np.int64)
        for _ in range(_HANDED_ON if self.event.size else 0):
            here = np.flatnonzero((at >= 0) & (result < 0))
            call = self._inside(at[here], self.is_own)
            result[here[call >= 0]] = self.chain[np.searchsorted(self.event, call[call >= 0])]
            here = here[call < 0]
            if not (handed_on and here.size):
                break
            links = contexts_of(self._profile)
            cause = np.full(self.is_own.size, -1, np.int64)
            cause[links.target] = links.cause
            taken = self._inside(at[here], cause >= 0)
            at[here] = np.where(taken >= 0, cause[taken], -1)
        return result

    def forward_of(self, events: AnyArray) -> Int64Array:
        """Which of ``chains`` ran the op whose gradient each of ``events`` (-1 for none) computes;
        -1 where none did, and for what a call within the backward pass runs.
        """
        result = np.full(events.size, -1, np.int64)
        autograd = autograd_of(self._profile)
        if not (autograd.has_numbers and self.event.size):
            return result
        known = np.flatnonzero(events >= 0)
        inner = self._inside(events[known].astype(np.int64), self.is_own | autograd.is_node)
        known = known[(inner >= 0) & autograd.is_node[inner]]
        result[known] = self.around(autograd.forward_of(events[known]))
        return result

    def runs_at(self, function: Function, moments: Int64Array) -> BoolArray:
        """Whether a call of ``function`` runs at each of some moments."""
        if function not in self.functions:
            return np.zeros(moments.size, np.bool_)
        if function not in self._spans:
            of_chain = np.array([chain[0] == function for chain in self.chains], np.bool_)
            event, trace = self.event[of_chain[self.chain]], trace_of(self._profile)
            self._spans[function] = union(trace.start[event], trace.end[event])
        return covered(self._spans[function], moments, moments + 1) > 0

    def _inside(self, events: Int64Array, wanted: BoolArray) -> Int64Array:
        """The innermost ``wanted`` event that is or holds each of ``events``; -1 for none."""
        around = nesting_of(self._profile).around(events, wanted)
        return np.where(wanted[events], events, around)


class _Stacks:
    """The calls that instructions of programs of XLA were traced from. ``lines`` are those of the
    functions that only such stacks name.
    """

    def __init__(self, profile: Profile, known: frozenset[Function]) -> None:
        self._profile = profile
        self._known: dict[tuple[str, str], list[Function]] = {}
        for one in known:
            self._known.setdefault((one.name, _base(one.file)), []).append(one)
        self._spent: dict[Function, Counter[int]] = {}
        self._chains: dict[tuple[int, str], Chain] = {}

    def of(self, keys: Sequence[tuple[int, str]], spent: Sequence[int]) -> list[Chain]:
        """The functions of each of some instructions (program and name) that took so long."""
        calls = self._read(dict.fromkeys(keys))
        result: list[Chain] = []
        for key, ps in zip(keys, spent, strict=True):
            chain: dict[Function, None] = {}
            for function, line in calls.get(key, ()):
                if function not in chain and not function.line:
                    self._spent.setdefault(function, Counter())[line] += ps
                chain[function] = None
            result.append(tuple(chain))
        return result

    @property
    def lines(self) -> dict[Function, int]:
        return {one: counts.most_common(1)[0][0] for one, counts in self._spent.items()}

    def _read(self, keys: dict[tuple[int, str], None]) -> dict[tuple[int, str], list[_Call]]:
        programs = self._profile.programs()
        if programs is None or not any(program for program, _ in keys):
            return {}
        if sum(len(programs.data(number)) for number in range(len(programs))) > _LARGEST:
            return {}
        number_of = {programs.program_id(number): number for number in range(len(programs))}
        key_of = {(number_of[key[0]], key[1]): key for key in keys if key[0] in number_of}
        wanted = frozenset(("module_id", "name", "stack_id", "source_file", "source_line"))
        table = self._profile.columns("hlo_instructions", wanted)
        name, owner = table.names("name"), table.array("module_id")
        names = {text for _, text in key_of}
        rows = np.flatnonzero(
            np.array([*(text in names for text in name.values), False])[name.codes]
        )
        owner, name, table = owner[rows], name.take(rows), table.take(rows)
        file, line = table.names("source_file"), table.array("source_line")
        stack = np.where(table.is_valid("stack_id"), table.array("stack_id"), -1)
        frames = self._frames(stack)
        result: dict[tuple[int, str], list[_Call]] = {}
        for row, number in enumerate(stack.tolist()):
            key = key_of.get((int(owner[row]), name[row] or ""))
            if key is not None:
                said = frames.get(number) or [("", file[row] or "", int(line[row]))]
                result.setdefault(key, self._calls(said))
        return result

    def _frames(self, stacks: Int64Array) -> dict[int, list[tuple[str, str, int]]]:
        table = self._profile.columns_or_empty("hlo_frames")
        result: dict[int, list[tuple[str, str, int]]] = {}
        if not table.rows or not (stacks >= 0).any():
            return result
        table = table.take(np.flatnonzero(np.isin(table.array("stack_id"), stacks)))
        columns = (table.array("stack_id").tolist(), table.names("function").to_list(),
                   table.names("file").to_list(), table.array("line").tolist())  # fmt: skip
        for stack, function, file, line in zip(*columns, strict=True):
            result.setdefault(stack, []).append((function or "", file or "", line))
        return result

    def _calls(self, frames: Sequence[tuple[str, str, int]]) -> list[_Call]:
        """Of the calls of a stack, the innermost first, those of the program's functions."""
        own = [one for one in frames if one[1] and whose_file(one[1]) == "program"]
        named = [one for one in own if has_name(one[0].rpartition(".")[2])]
        return [(self._function(*one), one[2]) for one in named or own[:1]]

    def _function(self, name: str, file: str, line: int) -> Function:
        """The function, as frames of threads name it where exactly one of them has its name."""
        same = self._known.get((name.rpartition(".")[2], _base(file)), ())
        return same[0] if len(same) == 1 else Function(name, file, 0 if name else line)


_Call = tuple[Function, int]


def _own(name: str) -> Function | None:
    frame = frame_of(name)
    if frame is None or frame.whose != "program":
        return None
    return Function(frame.function, frame.file, frame.line)


def _base(file: str) -> str:
    return re.split(r"[\\/]", file)[-1]


def _of_devices(profile: Profile, frames: _Frames, stacks: _Stacks) -> _Sums:
    sums, runs = _Sums(), joined_runs(profile, framework_executions(profile))
    is_work = np.array([(key.name, key.op_type) != (IDLE, IDLE) for key in runs.keys], np.bool_)
    if not runs.event.size:
        return sums
    chosen = is_work[runs.op]
    event, spent = runs.event[chosen].astype(np.int64), runs.own_ps[chosen]
    cause, host = np.full(trace_of(profile).size, -1, np.int64), host_executions(profile)
    run, links = launching_runs(profile), links_of(profile)
    cause[run >= 0] = host.event[run[run >= 0]]
    cause[links.target] = links.cause
    device = device_executions(profile)
    number = np.full(cause.size, -1, np.int64)
    number[device.event] = device.op
    keys = [(op.key[0] % 2**64, op.key[1]) for op in device.ops]
    work = _Work(event, spent, number[event], keys)
    around = frames.around(cause[event], handed_on=True)
    for part in _parts(profile, work, around, frames.forward_of(cause[event]), frames, stacks):
        sums.runs[sums.add(part)] += part.spent.size
    return sums


def _of_host(profile: Profile, frames: _Frames, stacks: _Stacks) -> _Sums:
    host, sums = host_executions(profile), _Sums()
    event, spent = host.event.astype(np.int64), host.own_ps
    if frames.event.size:
        # What is not of an op within a call is of the call.
        both = np.union1d(event, frames.event)
        took = _self_times(profile, both)
        spent = took[np.searchsorted(both, event)]
        of_calls = took[np.searchsorted(both, frames.event)]
        for call, ps in enumerate(summed(frames.chain, of_calls, len(frames.chains)).tolist()):
            sums.add(_Part((), frames.chains[call], np.array([ps]), np.zeros(1, np.int64)))
        for call, count in enumerate(np.bincount(frames.chain).tolist()):
            sums.runs[frames.chains[call][0]] += count
    number, keys = _instructions(profile, event)
    work = _Work(event, spent, number, keys)
    forward, around = frames.forward_of(event), frames.around(event)
    for part in _parts(profile, work, around, forward, frames, stacks):
        owner = sums.add(part, frames)
        # Of a function on a thread it is known how often it was called.
        sums.runs[owner] += 0 if owner in frames.functions else part.spent.size
    return sums


def _parts(
    profile: Profile,
    work: _Work,
    around: Int64Array,
    forward: Int64Array,
    frames: _Frames,
    stacks: _Stacks,
) -> Iterator[_Part]:
    """``work`` by the functions that it belongs to; ``around`` and ``forward`` are places in
    ``frames.chains``, of each execution or its launch.
    """
    first, group = distinct(work.number, forward, around)
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(first.size + 1)).tolist()
    spent, start = work.spent[order], trace_of(profile).start[work.event[order]]
    total = summed(group, work.spent, first.size).tolist()
    used = [work.keys[n] if n >= 0 else (0, "") for n in work.number[first].tolist()]
    chains = [*frames.chains, ()]
    for place, of_program in enumerate(stacks.of(used, total)):
        row, some = int(first[place]), slice(bounds[place], bounds[place + 1])
        chain = of_program or chains[int(forward[row])]
        yield _Part(chain, chains[int(around[row])], spent[some], start[some])


def _self_times(profile: Profile, event: Int64Array) -> Int64Array:
    """How long each of ``event`` took without the others within it."""
    trace = trace_of(profile)
    is_one = np.zeros(trace.size, np.bool_)
    is_one[event] = True
    around = nesting_of(profile).around(event, is_one)
    took = trace.end[event] - trace.start[event]
    inside = around >= 0
    place = np.searchsorted(event, around[inside])
    result: Int64Array = np.maximum(took - summed(place, took[inside], event.size), 0)
    return result


def _instructions(profile: Profile, event: Int64Array) -> tuple[Int64Array, list[tuple[int, str]]]:
    """Per event of the host which instruction it is of those that are returned, -1 for none."""
    none = np.full(event.size, -1, np.int64)
    trace = trace_of(profile)
    if trace.source != "events" or not event.size:
        return none, []
    stats, rows = op_stats_of(profile), trace.rows(event)
    text, program = stats["hlo_op"].texts_at(rows), stats["program_id"].integers_at(rows)
    chosen = np.flatnonzero(text >= 0)
    if not chosen.size:
        return none, []
    first, group = distinct(text[chosen], program[chosen])
    none[chosen] = group
    texts = stats["hlo_op"].texts
    at = chosen[first].tolist()
    return none, [(int(program[n]) % 2**64, texts[int(text[n])].rsplit("::", 1)[-1]) for n in at]
