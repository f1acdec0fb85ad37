"""The memory answer of a profile, from the tables that it has: what every face shows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.catalogue import memory_findings
from peakline.findings.context import MemoryContext
from peakline.findings.kind import of_frame
from peakline.findings.program_values import programs_of
from peakline.findings.recording_advice import to_count_memory, to_place_memory, to_record_memory
from peakline.memory.allocator_names import recorded_name
from peakline.memory.details import read_details, records_of_step
from peakline.memory.fit.answer import scarce_fits
from peakline.memory.growth.single_pass import read_pass_facts
from peakline.memory.oom import failed_moments, with_limits
from peakline.memory.origins.behind import Behind
from peakline.memory.origins.element_types import float64_ops
from peakline.memory.origins.stacks import signature_codes
from peakline.memory.savings.op_use import read_op_use
from peakline.memory.usage import MOST_ALLOCATORS, with_fewer_allocators, without_implausible
from peakline.shown import Brief, Shown, Tabular, several, table_of
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.tables.profile_facts import is_moment
from peakline.text import allocator_text, counted, size_text
from peakline.trace.steps import Steps, labels_of

if TYPE_CHECKING:
    import pyarrow as pa

    from peakline.arrays import AnyArray
    from peakline.findings.finding import Finding
    from peakline.memory.details import MemoryDetails
    from peakline.memory.fit.model import Fit
    from peakline.memory.growth.single_pass import PassFacts
    from peakline.memory.oom import FailedMoment
    from peakline.memory.peak.explained import AllocatorPeak
    from peakline.memory.savings.op_use import OpUse
    from peakline.memory.signatures import History
    from peakline.tables.columns import Columns
    from peakline.trace.frames import Frame


_GROWS = frozenset(("leak", "cache", "step_up", "sawtooth", "one_pass"))


def with_lines(findings: Iterable[Finding], context: MemoryContext) -> list[Finding]:
    """The findings, each with the function of the program that made most of its buffers, where the
    records have call stacks.
    """
    return [_with_line(finding, context) for finding in findings]


def _with_line(finding: Finding, context: MemoryContext) -> Finding:
    evidence, history, origins = finding.evidence, context.history, context.origins
    if history is None or origins is None or "function" in evidence or "op" not in evidence:
        return finding
    codes = signature_codes(history, evidence)
    rows = _buffers(finding.kind, history, codes, context)
    frame = origins.function(rows, history.allocated[rows]) if rows.size else None
    if frame is None:
        return _with_op(finding, context, rows)
    forward = _forward(context, rows)
    if forward is not None:
        return replace(
            finding,
            title=f"{finding.title}; allocated for the gradient of {forward.title}",
            evidence={**evidence, **of_frame(forward), "path": frame.title},
        )
    stack = next(one for one in origins.of(rows) if one.program == frame)
    within = f", by {stack.op}" if stack.op and stack.op != evidence["op"] else ""
    more: dict[str, object] = {"path": " > ".join(one.title for one in stack.path)}
    if stack.module:
        more["module"] = stack.module
    if stack.library is not None:
        more["callee"] = stack.library.title
    return replace(
        finding,
        title=f"{finding.title}; allocated in {frame.title}{within}",
        evidence={**evidence, **of_frame(frame), **more},
    )


def _with_op(finding: Finding, context: MemoryContext, rows: AnyArray) -> Finding:
    """Where no frame says it, the op that a program calls, for one that allocates within it."""
    ops, history = context.op_events, context.history
    if ops is None or history is None or not rows.size:
        return finding
    op = ops.outermost_op(int(rows[int(history.allocated[rows].argmax())]))
    if not op or op in finding.title:
        return finding
    return replace(
        finding,
        title=f"{finding.title}; allocated by {op}",
        evidence={**finding.evidence, "path": op},
    )


def _forward(context: MemoryContext, rows: AnyArray) -> Frame | None:
    """Of buffers of a backward pass the function whose ops it is the gradient of, by most bytes."""
    ops, history = context.op_events, context.history
    if ops is None or history is None or not ops.is_backward[rows].all():
        return None
    sizes: dict[Frame, int] = {}
    for frame, size in zip(
        ops.forward_functions(rows), history.allocated[rows].tolist(), strict=True
    ):
        if frame is not None:
            sizes[frame] = sizes.get(frame, 0) + size
    return max(sizes, key=lambda frame: sizes[frame]) if sizes else None


def _buffers(kind: str, history: History, codes: AnyArray, context: MemoryContext) -> AnyArray:
    """The allocations it is about: those that live at the end, or at the peak; else all."""
    mine = np.flatnonzero(np.isin(history.signatures.codes, codes))
    if kind in _GROWS:
        live = mine[history.lifetimes.end[mine] < 0]
        return live if live.size else mine
    for one in context.allocators:
        if one.at_peak is not None:
            there = one.at_peak.rows[np.isin(one.at_peak.codes, codes)]
            if there.size:
                return there
    return mine


@once
def op_types_of(profile: Profile) -> Mapping[str, str]:
    """Types by name: of executions and nodes of a graph, and of events that are called
    ``name:Type`` (TensorFlow).
    """
    result: dict[str, str] = {}
    for table in ("op_runs", "nodes"):
        if table not in profile.tables or not profile.has_rows(table):
            continue
        column = "op_type" if table == "op_runs" else "op"
        rows = profile.columns(table, frozenset(("name", column)))
        names, types = rows.names("name"), rows.names(column)
        pairs = np.unique(np.stack([names.codes, types.codes]), axis=1)
        for name, kind in pairs.T.tolist():
            if name >= 0 and kind >= 0 and types.values[kind]:
                result.setdefault(names.values[name], types.values[kind])
    if not result and "events" in profile.tables:
        events = profile.columns("events", frozenset(("name",))).names("name")
        for text in events.values:
            name, _, kind = text.rpartition(":")
            if name and kind[:1].isupper() and kind.isalnum():
                result.setdefault(name, kind)
    return result


NOTHING = "no_memory_events"
"""The kind of the warning of a profile that holds nothing about memory."""


@dataclass(frozen=True, repr=False)
class Notice(Brief):
    """Something the answer had to guess: a fixed word, how often, one line for a person."""

    kind: str
    count: int
    detail: str


@dataclass(frozen=True, eq=False, repr=False)
class MemoryAnswer(Shown, Tabular):
    """What ``peakline memory`` says; ``step`` is the step it was restricted to, else None.

    ``details`` are the analyses behind the findings, one per entry of ``allocators``; ``history``
    is what they all read, the records matched, measured and named. Both are empty where the
    profile holds no records. ``nothing`` is one line for a profile without anything about memory,
    ``to_record`` how to record it, or what else to record, empty where that is not known.
    ``of_programs`` says that the findings are those of compiled programs. ``fits`` says of
    allocators whose memory is scarce in how much of it they would run. ``moment``: the file is of
    one moment, and says nothing of time. ``labels`` are the names of the steps, by id. ``profile``
    is the one that it is about, where the answer shows as much as the verb prints.
    """

    allocators: tuple[AllocatorPeak, ...]
    findings: tuple[Finding, ...]
    notices: tuple[Notice, ...]
    step: int | None
    details: tuple[MemoryDetails, ...] = ()
    history: History | None = None
    nothing: str = ""
    to_record: str = ""
    of_programs: bool = False
    fits: tuple[Fit, ...] = ()
    moment: bool = False
    labels: Mapping[int, str] = field(default_factory=dict)
    profile: Profile | None = None

    def __post_init__(self) -> None:
        several(self, "allocators", "findings", "notices", "details", "fits")

    def to_arrow(self) -> pa.Table:
        """What is live at each allocator's peak: ``allocator`` and the fields of `PeakBuffer`."""
        from dataclasses import asdict

        rows = [
            {"allocator": peak.allocator} | asdict(buffer)
            for peak in self.allocators
            for buffer in peak.peak_buffers
        ]
        return table_of(rows)

    def _headline(self) -> str:
        parts = []
        if self.allocators:
            most = max(self.allocators, key=lambda peak: peak.peak_bytes)
            parts.append(f"peak {size_text(most.peak_bytes)} of {allocator_text(most.allocator)}")
        elif self.nothing:
            parts.append(self.nothing)
        if self.allocators[1:]:
            parts.append(counted(len(self.allocators), "allocator"))
        if self.findings:
            parts.append(counted(len(self.findings), "finding"))
        return ", ".join(parts)


def answer_memory(
    profile: Profile, *, allocator: str | None = None, step: str | None = None
) -> MemoryAnswer:
    """Why allocations failed, every allocator's peak, and what stands out.

    ``allocator`` keeps one allocator, by its name in the file or the device's that screens show;
    ``step``, an id or a name, asks for the largest use while that step ran. What had to be guessed
    is counted in ``profile.warnings``, once for each question; so is, as `NOTHING`, a
    profile without anything about memory, whose answer is empty and says so in ``nothing``.
    Raises NotFoundError for an unknown allocator or step, InputError when the profile cannot be
    read.
    """
    return _warned(profile, _answer(profile, recorded_name(profile, allocator), step), step)


def memory_of(profile: Profile) -> MemoryAnswer:
    """The answer of all allocators and steps, as `answer_memory`, made once for an open
    profile, however often it is needed.
    """
    return _warned(profile, _whole_answer(profile))


@once
def _whole_answer(profile: Profile) -> MemoryAnswer:
    return _answer(profile, None, None)


def explain_memory(
    events: Columns,
    steps: Columns,
    *,
    allocator: str | None = None,
    step: str | None = None,
    ops: OpUse | None = None,
    facts: Callable[[], PassFacts] | None = None,
    programs: Collection[str] = (),
    failures: tuple[FailedMoment, ...] = (),
    profile: Profile | None = None,
) -> MemoryAnswer:
    """Explain the peaks of ``allocator_events`` (in time order), and what stands out about them.

    ``allocator`` keeps one allocator. ``step``, a step's id or name, asks for the largest memory in
    use while that step ran instead of in the whole profile; growth, fragmentation and churn stay
    those of the whole profile. ``ops`` is what executions of ops say, where the file has any
    (`peakline.memory.savings.op_use.read_op_use`); ``facts`` gives what it says of passes over
    layers (`peakline.memory.growth.single_pass.read_pass_facts`); ``programs`` are the names of the
    compiled programs in it, ``failures`` when allocations failed; of ``profile`` the call stacks
    and the executions of ops are read where it has them. Raises NotFoundError for an unknown
    allocator or step.
    """
    number = None if step is None else Steps.of(steps).find(step)
    if events.rows == 0:
        return _findings_only(failures, number)
    # Compiling and loading the kernels takes a moment: only when there is something to explain.

    events, implausible = without_implausible(events)
    events, others = with_fewer_allocators(events, allocator)
    behind = Behind(profile, events.rows)
    history, details = read_details(
        events,
        steps,
        allocator=allocator,
        eligible=None if number is None else records_of_step(number, events, steps),
        ops=ops,
        facts=facts,
        programs=programs,
        describe=behind.describe,
    )
    peaks = tuple(one.peak for one in details)
    notices = [notice for peak in peaks for notice in _notices(peak)]
    if implausible:
        detail = "records with a size below 0 or above 2^48 bytes, which is taken as unknown"
        notices.append(Notice("implausible_size", implausible, detail))
    if others:
        detail = f"allocators beyond the {MOST_ALLOCATORS} largest, whose memory is one"
        notices.append(Notice("many_allocators", others, detail))
    answer = _findings_only(failures, number, details, history, behind)
    return replace(answer, allocators=peaks, notices=tuple(notices), history=history)


def _findings_only(
    failures: tuple[FailedMoment, ...],
    step: int | None,
    details: tuple[MemoryDetails, ...] = (),
    history: History | None = None,
    behind: Behind | None = None,
) -> MemoryAnswer:
    if not (failures or details):
        return MemoryAnswer((), (), (), step)

    context = MemoryContext(details, failures, history)
    if behind is not None and behind.profile is not None and history is not None:
        # The time's findings need it when the records may be released already.
        float64_ops(behind.profile)
        types = partial(op_types_of, behind.profile)
        context = MemoryContext(
            details,
            failures,
            history,
            behind.origins(history),
            behind.runs,
            behind.steps,
            types,
            profile=behind.profile,
        )
    result = with_lines(memory_findings(context), context)
    return MemoryAnswer((), tuple(result), (), step, details)


def _warned(profile: Profile, answer: MemoryAnswer, step: str | None = None) -> MemoryAnswer:
    """``answer``, with what it had to guess counted in the profile's warnings."""
    if not (answer.allocators or answer.findings) or answer.of_programs:
        where = "this profile" if answer.step is None else f"step {step}"
        nothing = f"no memory events in {where}"
        how = to_record_memory(profile) if answer.step is None else ""
        profile.warn(NOTHING, nothing, once=True)
        return replace(answer, nothing=nothing, to_record=how)
    known = {warning.kind for warning in profile.warnings}
    for notice in answer.notices:
        # A log's reader has counted its untracked records, and their bytes, already.
        if not (notice.kind == "untracked_allocation" and "untracked" in known):
            profile.warn(notice.kind, notice.detail, notice.count, once=True)
    if not answer.allocators:
        return answer
    more = (to_count_memory(profile, answer.allocators), to_place_memory(profile))
    return replace(answer, to_record="; ".join(filter(None, more)))


def _answer(profile: Profile, allocator: str | None, step: str | None) -> MemoryAnswer:
    failures = failures_of(profile)
    if not ("allocator_events" in profile.tables and profile.columns("allocator_events").rows):
        answer = _findings_only(failures, None)
        return answer if failures or allocator else _of_programs(profile, answer)

    answer = explain_memory(
        profile.columns("allocator_events"),
        profile.columns_or_empty("steps"),
        allocator=allocator,
        step=step,
        ops=_op_use(profile),
        facts=lambda: read_pass_facts(profile),
        programs=_program_names(profile),
        failures=failures,
        profile=profile,
    )
    peaks = with_limits(profile, answer.allocators)
    fits: tuple[Fit, ...] = ()
    if answer.history is not None and step is None:
        failed = {one.failures[0].allocator for one in failures}
        fits = scarce_fits(profile, answer.history, peaks, failed)
    return replace(
        answer,
        allocators=peaks,
        fits=fits,
        moment=is_moment(profile),
        labels=labels_of(profile.columns_or_empty("steps")),
    )


def _of_programs(profile: Profile, answer: MemoryAnswer) -> MemoryAnswer:
    """What the compiled programs of a profile say, in which no allocator recorded anything."""
    if not profile.programs():
        return answer

    result = tuple(memory_findings(MemoryContext(programs=programs_of(profile))))
    return replace(answer, findings=result, of_programs=bool(result))


def _program_names(profile: Profile) -> frozenset[str]:
    programs = profile.programs()
    names = () if programs is None else map(programs.name, range(len(programs)))
    return frozenset(name.partition("(")[0] for name in names)


def _op_use(profile: Profile) -> OpUse | None:
    """What executions of ops say, where the file has any."""
    if "op_runs" not in profile.tables or not profile.has_rows("op_runs"):
        return None

    edges = profile.columns("edges") if "edges" in profile.tables else None
    return read_op_use(profile.columns("op_runs"), edges if edges and edges.rows else None)


def failures_of(profile: Profile) -> tuple[FailedMoment, ...]:
    """When allocations failed, where the file reports any that did."""
    if "oom_reports" not in profile.tables or not profile.columns("oom_reports").rows:
        return ()

    blocks, parts = (profile.columns_or_empty(name) for name in ("blocks", "oom_parts"))
    return failed_moments(profile.columns("oom_reports"), blocks, parts)


def _notices(peak: AllocatorPeak) -> Iterator[Notice]:
    """What the explanation could not follow.

    Frees of memory from before the profile are understood, and no notice.
    """
    name = allocator_text(peak.allocator)
    for kind, count, detail in (
        (
            "untracked_allocation",
            peak.untracked_allocations,
            "records without id and address, whose buffers cannot be followed",
        ),
        (
            "double_allocation",
            peak.double_allocations,
            "allocations where a buffer was live; the earlier one is taken as freed",
        ),
        (
            "unmatched_deallocation",
            peak.unexplained_deallocations,
            "deallocations that match no allocation and no memory from before the profile",
        ),
    ):
        if count:
            yield Notice(kind, count, f"{name}: {detail}")
