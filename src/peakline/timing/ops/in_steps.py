"""Which ops the steps' time goes to: executions by kind of work, on devices, or on the host.

Of ops that run within others (PyTorch's) the outermost one whose kind is known counts, with all
that lies in it: a copy within a sort is a part of the sort.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.memory.origins.element_types import float64_ops
from peakline.tables import Profile
from peakline.tables.joins import ranges, summed
from peakline.tables.once import once
from peakline.timing.ops.device import framework_executions
from peakline.timing.ops.host import host_executions
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.timing.steps.facts import FEWEST_STEPS, WARM_UP, step_facts_of
from peakline.trace.activity import activity_of, memory_copy_calls
from peakline.trace.activity_names import Activity
from peakline.trace.device_lines import MOST_DEVICES
from peakline.trace.events import Trace, nesting_of, trace_of
from peakline.trace.frames import Frame, frame_of
from peakline.trace.intervals import covered, intersection, union
from peakline.trace.op_inputs import inputs_of
from peakline.trace.work_classes import Work, work_of

_MANY = 256
"""Of more steps an even choice is looked at."""


@dataclass(frozen=True, eq=False)
class StepOps:
    """Executions of ops in the steps, without the first ones, of the side that does the work.

    ``side`` is ``device`` where a device works, else ``host``. ``event`` are places in ``trace``,
    ``op`` places in ``keys`` (name and type), ``work`` what each does (a `Work`; OTHER too for what
    lies in one that is known), ``is_inner`` says which lie in one that is known, ``is_leaf`` which
    hold no other, ``is_outermost`` which lie in none, ``is_hlo`` which are instructions of compiled
    programs. ``begin`` and ``end`` are when the ``steps`` (their number, 1 without any) run, one
    span where they touch, or the whole profile's; ``lane`` is the device of each execution and
    ``lanes`` their number.
    """

    side: str
    trace: Trace
    keys: list[tuple[str, str]]
    event: Int64Array
    op: AnyArray
    own_ps: Int64Array
    work: AnyArray
    is_inner: BoolArray
    is_leaf: BoolArray
    is_outermost: BoolArray
    is_hlo: BoolArray
    begin: Int64Array
    end: Int64Array
    lane: AnyArray
    lanes: int
    has_steps: bool
    steps: int

    @property
    def wall_ps(self) -> int:
        """The time of all steps of a lane."""
        return int((self.end - self.begin).sum())

    def alone_ps(self, chosen: BoolArray) -> int:
        """How long the ``chosen`` executions run while no other op does, per lane.

        That is what a step would be shorter by without them, at least.
        """
        whole = 0
        for lane in np.unique(self.lane[chosen]).tolist():
            mine = self.lane == lane
            own = self._spans(mine & chosen)
            others = self._spans(mine & ~chosen & ~self.is_inner & self.is_leaf)
            shared = intersection(own, others)
            whole += self._within(own) - self._within(shared)
        return max(whole, 0) // self.lanes

    def covered_ps(self, chosen: BoolArray) -> int:
        """How long any of the ``chosen`` executions runs, per lane."""
        lanes = np.unique(self.lane[chosen]).tolist()
        spans = [self._spans((self.lane == lane) & chosen) for lane in lanes]
        return sum(self._within(one) for one in spans) // self.lanes

    def _spans(self, chosen: BoolArray) -> tuple[AnyArray, AnyArray]:
        event = self.event[chosen]
        return union(self.trace.start[event], self.trace.end[event])

    def _within(self, spans: tuple[AnyArray, AnyArray]) -> int:
        return int(covered(spans, self.begin, self.end).sum())

    def chosen_ops(self, chosen: AnyArray) -> BoolArray:
        """Which executions are of one of the ops ``chosen``, places in ``keys``."""
        return np.isin(self.op, chosen)

    def self_ps(self, chosen: BoolArray) -> int:
        """The self time of the ``chosen`` executions, per lane; side by side it counts once."""
        return min(int(self.own_ps[chosen].sum()) // self.lanes, self.covered_ps(chosen))

    def by_op(
        self, chosen: BoolArray, *, of_self: bool = False
    ) -> list[tuple[str, str, int, float]]:
        """The ``chosen`` by op: name, type, time or self time in all (ps per lane) and times a
        step; most first.
        """
        op, event = self.op[chosen], self.event[chosen]
        took = self.own_ps[chosen] if of_self else self.trace.end[event] - self.trace.start[event]
        whole = summed(op, took, len(self.keys))
        count = np.bincount(op, minlength=len(self.keys))
        return [
            (*self.keys[k], int(whole[k]) // self.lanes, int(count[k]) / self.steps / self.lanes)
            for k in np.argsort(-whole, kind="stable").tolist()
            if count[k]
        ]


@once
def step_ops_of(profile: Profile, *, of_host: bool = False) -> StepOps | None:
    """The executions of ops in the steps; ``of_host`` those of the host even where a device works.

    None where no op ran. Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    if not trace.size:
        return None
    if of_host:
        runs, side = host_executions(profile), "host"
    else:
        runs, side = framework_executions(profile), "device"
        if not runs.event.size:
            return step_ops_of(profile, of_host=True)
    if not runs.event.size:
        return None
    begin, end, steps = _windows(profile, trace)
    chosen = _starting_in(trace, runs.event, begin, end)
    if side == "host":
        does = activity_of(profile)[runs.event[chosen]]
        chosen = chosen[(does != Activity.INPUT_WORK) & (does != Activity.COMPILE)]
    event = runs.event[chosen].astype(np.int64)
    lane = _lanes(trace, event) if side == "device" else 0 * event
    is_first = lane < MOST_DEVICES
    chosen, event, lane = chosen[is_first], event[is_first], lane[is_first]
    op, own = runs.op[chosen], runs.own_ps[chosen]
    if not event.size:
        return None
    works = np.array([work_of(key.name, key.op_type) for key in runs.keys], np.int64)[op]
    is_hlo = np.zeros(event.size, np.bool_)
    is_inner, is_leaf, is_outermost = is_hlo, ~is_hlo, ~is_hlo
    if runs.calls:
        works = _with_transfers(profile, trace, event, works)
        is_inner, is_leaf, is_outermost = _places(profile, trace, event, works)
    else:
        works, is_hlo = _of_instructions(profile, trace, event, works)
    if side == "device":
        # Whatever op asks for it, a copy from or to the host is no cast and no transpose.
        crosses = (Activity.HOST_TO_DEVICE, Activity.DEVICE_TO_HOST)
        moved = np.isin(activity_of(profile)[event], crosses) & np.isin(works, _MOVES)
        works = np.where(moved, Work.TRANSFER, works)
    works = np.where(is_inner, Work.OTHER, works)
    keys = [(key.name, key.op_type) for key in runs.keys]
    return StepOps(
        side, trace, keys, event, op, own, works, is_inner, is_leaf, is_outermost, is_hlo,
        begin, end, lane, int(lane.max()) + 1, steps > 0, max(steps, 1),
    )  # fmt: skip


def _starting_in(trace: Trace, event: AnyArray, begin: Int64Array, end: Int64Array) -> Int64Array:
    """Which of ``event`` start in a window. Of a long profile few windows are looked at: what lies
    in them is searched for by line, as that is sorted.
    """
    order = np.argsort(event, kind="stable")  # by a device's own clock they may not ascend
    parts = [np.zeros(0, np.int64)]
    for line in trace.lines:
        starts = trace.start[line.events]
        places = (line.first + np.searchsorted(starts, times) for times in (begin, end))
        bounds = (np.searchsorted(event, one.astype(event.dtype), sorter=order) for one in places)
        parts.append(ranges(*bounds))
    return np.sort(order[np.concatenate(parts)])


def _lanes(trace: Trace, event: Int64Array) -> AnyArray:
    """The number of the device of each event, among those of all of them."""
    planes = np.array([line.plane for line in trace.lines])[trace.lines_of(event)]
    return np.unique(planes, return_inverse=True)[1].ravel()


def _of_instructions(
    profile: Profile, trace: Trace, event: Int64Array, works: AnyArray
) -> tuple[AnyArray, BoolArray]:
    """The work of executions of HLO instructions by the instruction's own name, and which are any.

    What a fusion was made for names one of many ops in it: a transpose, where a product runs.
    """
    if trace.source != "events" or "event_stats" not in profile.tables:
        return works, np.zeros(event.size, np.bool_)
    rows = op_stats_of(profile)["hlo_op"].row
    is_hlo = np.isin(event, trace.places(rows))
    codes = trace.name.codes[event]
    known = np.full(len(trace.name.values) + 1, Work.OTHER, np.int64)
    is_fusion = np.zeros(known.size, np.bool_)
    for code in np.unique(codes[is_hlo]).tolist():
        name = trace.name.values[code]
        known[code], is_fusion[code] = work_of(name, ""), "fusion" in name
    stated = np.where((known[codes] == Work.OTHER) & ~is_fusion[codes], works, known[codes])
    return np.where(is_hlo, stated, works), is_hlo


def time_of_function(
    profile: Profile, ops: StepOps, event: Int64Array, function: Frame | None
) -> int:
    """What the executions of ``function`` around ``event`` take in the steps, per lane; 0 where
    they last as long as the steps themselves.
    """
    if function is None:
        return 0
    trace = ops.trace
    mine = trace.name.per_row(lambda name: frame_of(name) == function, np.bool_)
    around = nesting_of(profile).around(event, mine)
    calls = np.unique(around[around >= 0])
    inside = calls[trace.end[calls] - trace.start[calls] < ops.wall_ps / ops.steps]
    spans = union(trace.start[inside], trace.end[inside])
    return int(covered(spans, ops.begin, ops.end).sum()) // ops.lanes


_MOVES = (Work.CAST, Work.LAYOUT)
_DEEPEST = 64


def _with_transfers(profile: Profile, trace: Trace, event: Int64Array, works: AnyArray) -> AnyArray:
    """``works`` where most of what seems a cast or a copy (``aten::to``, ``aten::copy_``) is a call
    that copies between host and device: that is a `Work.TRANSFER`, whatever its type.
    """
    copies = memory_copy_calls(trace)
    if not copies.size:
        return works
    parent = nesting_of(profile).parent
    inside = np.zeros(trace.size + 1, np.int64)
    took, above = trace.end[copies] - trace.start[copies], copies
    for _ in range(_DEEPEST):
        above = np.where(above >= 0, parent[above], -1)
        np.add.at(inside, above, took)
    most = 2 * inside[event] >= np.maximum(trace.end[event] - trace.start[event], 1)
    return np.where(most & np.isin(works, _MOVES), Work.TRANSFER, works)


def _windows(profile: Profile, trace: Trace) -> tuple[Int64Array, Int64Array, int]:
    """When the steps of the main population run, the first ones left out, and their number; else
    all of the profile, and 0.
    """
    facts = step_facts_of(profile).main
    first, last = trace.span()
    whole = np.array([first]), np.array([last]), 0
    if not facts.rows:
        return whole
    begin, end, ids = (facts.part(name) for name in ("start_ps", "end_ps", "step_id"))
    if facts.count >= WARM_UP + FEWEST_STEPS:
        late = facts.number >= WARM_UP
        begin, end, ids = begin[late], end[late], ids[late]
    every = np.unique(ids)
    if every.size > _MANY:
        every = every[np.linspace(0, every.size - 1, _MANY).astype(np.int64)]
        mine = np.isin(ids, every)
        begin, end = begin[mine], end[mine]
    begin, end = union(begin, end)
    # Steps without length, in a damaged file, are none.
    return (begin, end, every.size) if begin.size else whole


def _places(
    profile: Profile, trace: Trace, event: Int64Array, works: AnyArray
) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Which executions lie in another whose work is known, hold no other, or lie in none."""
    place = np.full(trace.size, -1, np.int32)
    place[event] = np.arange(event.size)
    nesting = nesting_of(profile)
    above = nesting.around(event, place >= 0)
    around = np.where(above >= 0, place[np.maximum(above, 0)], -1).astype(np.int64)
    is_leaf = np.ones(event.size, np.bool_)
    is_leaf[around[around >= 0]] = False
    is_known = np.zeros(trace.size, np.bool_)
    is_known[event[works != Work.OTHER]] = True
    is_inner = nesting.around(event, is_known) >= 0
    return is_inner, is_leaf, around < 0


_SHORT = 1 << 21
_LARGEST = 64 << 20
"""Bytes of programs that are looked through for the types of their instructions."""


def is_float64(profile: Profile, ops: StepOps) -> BoolArray:
    """Per execution whether it reads or makes numbers of 64 bits.

    PyTorch records the types of inputs (``record_shapes``), TensorFlow those of what ops put out
    (StepStats, memory events), XLA those of instructions.
    """
    if inputs_of(profile).type_texts:
        result: BoolArray = inputs_of(profile).is_float64[ops.event]
        return result
    # Of a long trace the records of memory are not read for this alone.
    names = float64_ops(profile, read=ops.trace.size <= _SHORT)
    by_key = np.array([name in names for name, _ in ops.keys], np.bool_)
    result = by_key[ops.op]
    if ops.is_hlo.any():
        result = result | _instructions(profile, ops)
    return result


def _instructions(profile: Profile, ops: StepOps) -> BoolArray:
    """By the instructions of the programs that the profile holds."""
    none = np.zeros(ops.event.size, np.bool_)
    programs = profile.programs()
    if programs is None or sum(len(programs.data(k)) for k in range(len(programs))) > _LARGEST:
        return none
    ids = {programs.program_id(number): number for number in range(len(programs))}
    table = profile.columns("hlo_instructions", frozenset(("module_id", "name", "shape")))
    shape, name = table.names("shape"), table.names("name")
    wide = shape.per_row(lambda text: "f64[" in text or "c128[" in text, np.bool_)
    rows = np.flatnonzero(wide)
    if not rows.size:
        return none
    module = table.array("module_id")[rows].tolist()
    known = {(number, name[row]) for number, row in zip(module, rows.tolist(), strict=True)}
    program = op_stats_of(profile)["program_id"].integers_at(ops.trace.rows(ops.event))
    codes = ops.trace.name.codes[ops.event]
    pairs, place = np.unique(np.stack([program, codes]), axis=1, return_inverse=True)
    texts = [*ops.trace.name.values, ""]
    is_wide = [
        (ids.get(number % 2**64, -1), texts[code]) in known for number, code in pairs.T.tolist()
    ]
    result: BoolArray = np.array(is_wide, np.bool_)[place.ravel()] & ops.is_hlo
    return result
