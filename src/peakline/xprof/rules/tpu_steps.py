"""Steps of TPUs: the self time per HLO category, step and core.

Sources of the rules: ``convert/xplane_to_step_events.cc``, ``convert/step_events_to_steps_db.cc``
and ``MayFixTpuStepAnalysis`` of ``convert/op_stats_to_input_pipeline_analysis.cc`` in
openxla/xprof.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.tables import Columns, Profile
from peakline.tables.joins import summed
from peakline.text import whole_number
from peakline.timing.ops.metrics import OpMetrics
from peakline.timing.ops.tpu import op_of_kind, over_order
from peakline.timing.steps.work import work_of
from peakline.trace.events import TraceLine, trace_of
from peakline.trace.intervals import Intervals, total, union, within
from peakline.trace.nesting import nest_lines
from peakline.xprof.rules.step_events import StepEvents, groups_of
from peakline.xprof.rules.step_kinds import SpanKind
from peakline.xprof.rules.step_model import (
    FIRST_SPARSE_CORE,
    IDLE,
    Collective,
    CoreDetails,
    CoreStep,
    Step,
)

_MODULUS = 2**64
LEAST = 2.2250738585072014e-308
"""What upstream's statistics start the search for a maximum from."""
_TRANSFERS = ("host send", "host send-done", "host recv", "host recv-done")
OFF_DUTY = frozenset(("infeed", "outfeed", *_TRANSFERS, "megacore fusion"))
"""Categories of ops in which a core waits for somebody else; of a megacore fusion only what it
calls is work."""


@dataclass(frozen=True)
class TpuCore:
    """What a TensorCore's step went to, in ps modulo 2^64, as XProf counts them."""

    duration_ps: int
    infeed_ps: int
    outfeed_ps: int
    transfer_ps: int
    sparse_wait_ps: int
    idle_ps: int
    busy_ps: int

    @property
    def optimal_ps(self) -> int:
        """How long it would take without waiting for the host or a SparseCore V0."""
        waits = self.infeed_ps + self.outfeed_ps + self.transfer_ps + self.idle_ps
        return (self.duration_ps - waits - self.sparse_wait_ps) % _MODULUS


@dataclass(frozen=True)
class TpuStep:
    """A step: the times of the slowest or the average core, as the field asks for.

    ``number`` is -1 where no core ran it. ``slowest_infeed`` names the core with the longest
    infeed, ``host:ordinal``; empty where that is not known.
    """

    number: int
    compute_ms: float = 0.0
    infeed_ms: float = 0.0
    outfeed_ms: float = 0.0
    idle_ms: float = 0.0
    busy_ms: float = 0.0
    host_transfer_ms: float = 0.0
    sparse_compute_ms: float = 0.0
    sparse_infeed_ms: float = 0.0
    infeed_percent: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Average, least and most over the cores."""
    all_reduce_ms: float = 0.0
    """The longest collectives of a core, which its compute time holds too."""
    sc_compute_ms: float = 0.0
    sc_idle_ms: float = 0.0
    sc_step_ms: float = 0.0
    sc_active_ms: float = 0.0
    active_ms: float = 0.0
    """How long TensorCores or SparseCores were busy, whichever was longer."""
    slowest_infeed: str = ""

    @property
    def input_ms(self) -> float:
        """Waiting for input, on a TensorCore or a SparseCore V0."""
        return self.infeed_ms + self.sparse_infeed_ms

    @property
    def non_idle_ms(self) -> float:
        """All that is known but idle."""
        compute = self.compute_ms + self.sparse_compute_ms
        return compute + self.input_ms + self.outfeed_ms

    @property
    def step_ms(self) -> float:
        """The step's time."""
        return self.non_idle_ms + self.idle_ms


def tpu_core(core: CoreStep) -> TpuCore:
    """What the step of a TensorCore went to, from its categories."""
    spent = {name: ps for name, ps in core.categories.items() if name != IDLE}
    idle = core.duration_ps - sum(spent.values())
    infeed, outfeed = spent.get("infeed", 0), spent.get("outfeed", 0)
    transfer = sum(spent.get(name, 0) for name in _TRANSFERS)
    from_sparse, to_sparse = (spent.get(f"sparsecorev0 {way}", 0) for way in ("infeed", "outfeed"))
    wait = from_sparse - min(from_sparse, to_sparse)
    off = idle + infeed + outfeed + transfer + spent.get("megacore fusion", 0)
    busy = core.duration_ps - off - wait
    parts = (core.duration_ps, infeed, outfeed, transfer, wait, idle, busy)
    return TpuCore(*(part % _MODULUS for part in parts))


def tpu_step(step: Step, details: Mapping[int, CoreDetails]) -> TpuStep:
    """One step over its cores; the compute time is that of the core that had least to do."""
    tensor = {n: tpu_core(core) for n, core in step.cores.items() if n < FIRST_SPARSE_CORE}
    sparse = [core for n, core in step.cores.items() if n >= FIRST_SPARSE_CORE]
    number = step.number if step.cores else -1
    result: dict[str, float | str | tuple[float, float, float]] = {}
    if sparse:
        lengths = [core.duration_ps for core in sparse]
        idles = [core.categories.get(IDLE, 0) % _MODULUS for core in sparse]
        computes = [(a - b) % _MODULUS for a, b in zip(lengths, idles, strict=True)]
        result["sc_step_ms"] = _ms(sum(lengths) // len(sparse))
        result["sc_idle_ms"] = _ms(sum(idles) % _MODULUS // len(sparse))
        result["sc_compute_ms"] = _ms(min(computes))
        result["sc_active_ms"] = _ms(sum(computes) % _MODULUS // len(sparse))
    if not tensor:
        return TpuStep(number)
    cores = list(tensor.values())
    slowest = max(tensor, key=lambda n: tensor[n].infeed_ps)
    if tensor[slowest].infeed_ps and slowest in details:
        result["slowest_infeed"] = f"{details[slowest].host}:{details[slowest].device_ordinal}"
    percent = [100.0 * core.infeed_ps / core.duration_ps for core in cores]
    shown = TpuStep(
        number,
        compute_ms=_ms(min(core.optimal_ps for core in cores)),
        infeed_ms=_ms(tensor[slowest].infeed_ps),
        outfeed_ms=_ms(sum(core.outfeed_ps for core in cores) % _MODULUS // len(cores)),
        busy_ms=_ms(sum(core.busy_ps for core in cores) % _MODULUS // len(cores)),
        host_transfer_ms=_ms(max(core.transfer_ps for core in cores)),
        sparse_compute_ms=_ms(max(core.sparse_wait_ps for core in cores)),
        all_reduce_ms=_ms(_longest_collectives(step)),
        infeed_percent=(sum(percent) / len(percent), min(percent), max(*percent, LEAST)),
        **result,  # type: ignore[arg-type]
    )
    active = max(shown.busy_ms, shown.sc_active_ms)
    idle = _ms(min(core.duration_ps for core in cores)) - shown.non_idle_ms
    return replace(shown, idle_ms=max(idle, 0.0), active_ms=active)


def _longest_collectives(step: Step) -> int:
    lengths = [
        sum(one.duration_ps for one in own)
        for number, own in step.collectives.items()
        if number in step.cores and number < FIRST_SPARSE_CORE
    ]
    return max(lengths, default=0)


def _ms(ps: float) -> float:
    return ps / 1e9


_CORE = re.compile(r"/device:TPU:([0-9]+)( SparseCore(?: [a-zA-Z]+)? [0-9]+)?")
_NEVER: Intervals = (np.zeros(0, np.int64), np.zeros(0, np.int64))
_OP_LINES, _SPARSE_OP_LINE = ("XLA Ops", "Sparse Core Ops"), "Sparse Core Ops"
_STEP_LINE, _SPARSE_WORK = "Steps", "sparse core"
_INFEED = "infeed"
_INFEEDS = (_INFEED, "sparsecorev0 infeed")
_STATS = frozenset(("device_offset_ps", "device_duration_ps", "all_reduce_unique_id"))
_TYPE_STATS = ("program_id", "symbol_id", "hlo_category")


@dataclass
class _Core:
    """What one core's plane says, by the place of the step; of a SparseCore when it worked."""

    number: int
    ordinal: int
    is_sparse: bool
    is_told_of: bool
    """Whether its plane says where it is."""
    work: Intervals = _NEVER
    markers: dict[int, tuple[int, int]] = field(default_factory=dict)
    categories: dict[int, dict[str, int]] = field(default_factory=dict)
    collectives: dict[int, list[Collective]] = field(default_factory=dict)
    ops: dict[int, dict[tuple[str, str], OpMetrics]] = field(default_factory=dict)


def tpu_steps(
    profile: Profile, planes: list[int], host: StepEvents
) -> tuple[tuple[Step, ...], dict[int, CoreDetails]]:
    """The steps that all TensorCores of the planes (by place) have, and what cores there are.

    ``host`` is what the host did.
    """
    reader = _Reader(profile)
    cores = [core for core in map(reader.core, planes) if core is not None]
    common: dict[int, list[_Core]] = {}
    for core in cores:
        if core.is_sparse or not core.categories:
            continue
        if common:
            common = {s: [*result, core] for s, result in common.items() if s in core.categories}
        else:
            common = {step: [core] for step in core.categories}
    places = sorted(common)
    ids = groups_of(profile).ids
    steps = [_step(int(ids[place]), place, common[place]) for place in places]
    steps = [_with_sparse_cores(step, cores) for step in steps]
    details = {
        core.number: CoreDetails(profile.host, core.ordinal, core.is_sparse)
        for core in cores
        if core.is_told_of or (core.is_sparse and core.work[0].size)
    }
    if not reader.has_infeed:
        waited = _input_ps(host)[places].tolist()
        steps = [_with_input(step, ps, details) for step, ps in zip(steps, waited, strict=True)]
    return tuple(steps), details


def _step(number: int, place: int, cores: list[_Core]) -> Step:
    markers = [core.markers[place] for core in cores]
    begin, end = max(markers, key=lambda marker: marker[1] - marker[0])
    result: dict[int, CoreStep] = {}
    if end > begin:
        for core in cores:
            categories = dict(core.categories[place])
            left = end - begin - sum(categories.values())
            categories[IDLE] = categories.get(IDLE, 0) + left
            ops = core.ops.get(place, {}).values()
            whole = max(sum(op.self_ps for op in ops) % 2**64, end - begin)
            result[core.number] = CoreStep(
                begin, end - begin, categories=categories, work=work_of(ops, whole)
            )
    collectives = {
        core.number: tuple(core.collectives[place]) for core in cores if place in core.collectives
    }
    return Step(number, result, collectives)


def _with_sparse_cores(step: Step, cores: list[_Core]) -> Step:
    """A step with what the SparseCores did meanwhile."""
    begin, end = step.window
    result = dict(step.cores)
    for core in cores if step.cores else ():
        if core.is_sparse and core.work[0].size:
            busy = total(within(core.work, begin, end))
            categories = {_SPARSE_WORK: busy, IDLE: end - begin - busy}
            result[core.number] = CoreStep(begin, end - begin, categories=categories)
    return replace(step, cores=result)


def _input_ps(host: StepEvents) -> AnyArray:
    """Per step how long the host waited for input or sent it, overlaps counted each."""
    waits = (host.kind == SpanKind.HOST_WAIT_INPUT) | (host.kind == SpanKind.HOST_TO_DEVICE)
    total = np.zeros(host.groups.ids.size, np.int64)
    np.add.at(total, host.step[waits], (host.end - host.begin)[waits])
    return total


def _with_input(step: Step, waited_ps: int, details: Mapping[int, CoreDetails]) -> Step:
    """A core without an infeed that idles while the host waits for input waits for it too."""
    if not waited_ps:
        return step
    idle_ms = tpu_step(step, details).idle_ms
    share = min(waited_ps / 1e9 / idle_ms, 1.0) if abs(idle_ms) >= 1e-10 else 0.0
    cores = dict(step.cores)
    for number, core in step.cores.items():
        idle = core.categories.get(IDLE, 0) % 2**64
        if number >= FIRST_SPARSE_CORE:
            continue
        infeed = int(idle * share)
        categories = {**core.categories, _INFEED: infeed, IDLE: idle - infeed}
        cores[number] = replace(core, categories=categories)
    return replace(step, cores=cores)


class _Reader:
    """Reads the planes of cores."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.trace, self.groups = trace_of(profile), groups_of(profile)
        self.ops: dict[int, OpMetrics] = {}
        self.has_infeed = False
        stats = profile.typed_stats(_STATS)
        self.stats = {name: self._stat(stats, name) for name in _STATS}
        types = profile.columns("event_type_stats")
        self.types = {name: self._of_type(types, name) for name in _TYPE_STATS}
        own = profile.columns("plane_stats")
        result = own.names("name").codes == own.names("name").code_of("core_details")
        self.telling = set(own.array("plane_id")[result].tolist())
        events = profile.columns("events", frozenset(("type_id",)))
        kinds = np.where(events.is_valid("type_id"), events.array("type_id"), -1)
        self.type_of = kinds if self.trace.row is None else kinds[self.trace.row]

    def _stat(self, stats: Columns, name: str) -> tuple[Int64Array, Int64Array]:
        """The events of the trace that have such a number (places, ascending), and the first."""
        rows = np.flatnonzero(stats.names("name").codes == stats.names("name").code_of(name))
        places, first = np.unique(
            self.trace.places(stats.array("event_id")[rows]), return_index=True
        )
        return places, stats.array("integer")[rows[first]]

    @staticmethod
    def _of_type(types: Columns, name: str) -> dict[int, str]:
        rows = np.flatnonzero(types.names("name").codes == types.names("name").code_of(name))
        values = types.names("value").take(rows).to_list()
        return {
            kind: text or ""
            for kind, text in zip(types.array("type_id")[rows].tolist(), values, strict=True)
        }

    def core(self, place: int) -> _Core | None:
        """A core's plane: its markers, and its ops in the steps that have one; None for another
        plane. A SparseCore has no steps of its own.
        """
        plane = self.trace.planes[place]
        result = _CORE.fullmatch(plane.name)
        number = None if result is None else whole_number(result[1])
        if result is None or number is None:
            return None
        is_sparse = result[2] is not None
        own = (plane.native_id or 0) + FIRST_SPARSE_CORE * is_sparse
        core = _Core(own, number, is_sparse, plane.plane_id in self.telling)
        for line in self.trace.lines_in(place):
            if is_sparse:
                if line.name == _SPARSE_OP_LINE:
                    core.work = self._work(line)
            elif line.name == _STEP_LINE:
                core.markers = self._markers(line)
            elif line.name in _OP_LINES:
                self._ops(core, line)
        core.categories = {s: result for s, result in core.categories.items() if s in core.markers}
        return core

    def _work(self, line: TraceLine) -> Intervals:
        """When a SparseCore did more than wait."""
        begin, end = self._times(line)
        idles = [kind for kind, name in self.types["hlo_category"].items() if name in OFF_DUTY]
        works = ~np.isin(self.type_of[line.events], idles)
        return union(begin[works], end[works])

    def _times(self, line: TraceLine) -> tuple[Int64Array, Int64Array]:
        """Begin and end of a line's events, by the device's clock where they have it."""
        begin = self.trace.start[line.events].copy()
        length = self.trace.end[line.events] - begin
        for name, times in (("device_offset_ps", begin), ("device_duration_ps", length)):
            at, value = self._on(line, name)
            times[at] = value
        return begin, begin + length

    def _on(self, line: TraceLine, name: str) -> tuple[Int64Array, Int64Array]:
        """Which events of a line have a stat, counted from its first, and the values."""
        places, values = self.stats[name]
        part = slice(*np.searchsorted(places, (line.first, line.last)).tolist())
        return places[part] - line.first, values[part]

    def _markers(self, line: TraceLine) -> dict[int, tuple[int, int]]:
        """The longest marker of each step; those of one step in a row are one."""
        begin, end = self._times(line)
        steps = self.groups.place[line.events]
        result: dict[int, tuple[int, int]] = {}
        run, last = (0, 0), -1
        for n, step in enumerate(steps.tolist()):
            if step < 0:
                continue
            own = (int(begin[n]), int(end[n]))
            if step == last:
                own = (run[0], max(run[1], own[1]))
            run, last = own, step
            if step not in result or own[1] - own[0] > result[step][1] - result[step][0]:
                result[step] = own
        return result

    def _ops(self, core: _Core, line: TraceLine) -> None:
        begin, end = self._times(line)
        steps = self.groups.place[line.events]
        types = self.type_of[line.events]
        self.has_infeed |= any(
            self.types["hlo_category"].get(kind) in _INFEEDS for kind in set(types.tolist())
        )
        rows = np.flatnonzero(steps >= 0)
        rows = rows[np.lexsort((-end[rows], begin[rows]))]
        begin, end, steps, types = begin[rows], end[rows], steps[rows], types[rows]
        own = end - begin
        parent = np.empty(rows.size, np.int32)
        nest_lines(
            begin, end, np.array([0, rows.size]), np.ones(1, np.bool_), parent,
            np.empty(rows.size, np.uint16), np.empty(rows.size, np.int64),
        )  # fmt: skip
        inside = np.flatnonzero(parent >= 0)
        np.subtract.at(own, parent[inside], (end - begin)[inside])
        self._count(core, steps, types, own, begin, end)
        at, values = self._on(line, "all_reduce_unique_id")
        row_of = np.full(line.last - line.first, -1, np.int64)
        row_of[rows] = np.arange(rows.size)
        for n, unique in zip(row_of[at].tolist(), values.tolist(), strict=True):
            if n >= 0:
                result = Collective(unique, int(end[n] - begin[n]))
                core.collectives.setdefault(int(steps[n]), []).append(result)

    def _count(
        self,
        core: _Core,
        steps: Int32Array,
        types: Int32Array,
        own: Int64Array,
        begin: Int64Array,
        end: Int64Array,
    ) -> None:
        """Add up self times by step and category, and ops; one without a number counts nowhere."""
        keys = np.stack([steps.astype(np.int64), types.astype(np.int64)])
        distinct, at = np.unique(keys, axis=1, return_inverse=True)
        total = np.zeros(distinct.shape[1], np.int64)
        np.add.at(total, at, own)
        whole = summed(at, end - begin, total.size).tolist()
        runs = np.bincount(at, minlength=total.size).tolist()
        # The kind of a symbol is that of its first op to be over, in each step.
        order = np.argsort(_firsts(at, over_order(end))) if self._repeats(distinct[1]) else None
        named: dict[tuple[int, str, str], int] = {}
        counted = list(zip(distinct.T.tolist(), total.tolist(), whole, runs, strict=True))
        for place in range(len(counted)) if order is None else order.tolist():
            (step, kind), spent, taken, times = counted[place]
            categories = core.categories.setdefault(step, {})
            program, symbol = (self.types[name].get(kind) for name in _TYPE_STATS[:2])
            if program is None or symbol in {None, "0"}:
                continue
            key = (program, symbol or "")
            first = named.setdefault((step, *key), kind)
            category = self.types["hlo_category"].get(first, "")
            categories[category] = categories.get(category, 0) + spent
            result = self._op(first).times(times, taken, spent)
            ops = core.ops.setdefault(step, {})
            if key in ops:
                ops[key].add(result)
            else:
                ops[key] = result

    def _repeats(self, kinds: AnyArray) -> bool:
        """Whether several kinds of events stand for one instruction."""
        distinct = np.unique(kinds).tolist()
        names = _TYPE_STATS[:2]
        symbols = {tuple(self.types[name].get(kind) for name in names) for kind in distinct}
        return len(symbols) < len(distinct)

    def _op(self, kind: int) -> OpMetrics:
        """One run of what a kind of event is."""
        if kind not in self.ops:
            self.ops[kind] = op_of_kind(self.profile, kind, "")[1]
        return self.ops[kind]


def _firsts(group: AnyArray, value: AnyArray) -> AnyArray:
    """The least value of each group."""
    least = np.full(int(group.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, group, value)
    return least
