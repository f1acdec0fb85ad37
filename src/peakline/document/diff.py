"""What is said of the difference between two profiles: figures, tables and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from peakline.compare.comparison import Comparison
from peakline.compare.memory import AllocatorDiff
from peakline.compare.rows import GroupDiff, RateDiff, signed_size, signed_time
from peakline.compare.state import NO_PURPOSE, AllocatorState, Kind
from peakline.compare.time import OpChange, TimeDiff
from peakline.document.limits import GROWS
from peakline.document.live import NOT_KNOWN
from peakline.document.model import Row, Table, columns_of, more_text
from peakline.document.wording import ALL_IN_JSON, FAR
from peakline.findings.finding import Finding
from peakline.tables.profile_facts import ProfileFacts
from peakline.text import allocator_text, size_text, time_text

_ALLOCATORS = 50
_ROWS = 12
_CHURN_ROWS = 5
_CHURN = 0.05
"""What a step allocates more or less of is shown from this share of all it allocates on."""
_LEAST = 0.001
"""A part of the mean step is shown from this share of the longer one on."""


_ABSENT = "not there"


@dataclass(frozen=True)
class Change:
    """A figure of both profiles as text; ``change`` is empty where it cannot be said."""

    label: str
    before: str
    after: str
    change: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        """All of it in one line."""
        if self.before == _ABSENT or not self.after or self.after == _ABSENT:
            return self.after if self.before == _ABSENT else self.before
        if self.change == "as before":
            return f"{self.before}, as before{self.note}"
        change = f", {self.change}" if self.change else ""
        return f"{self.before} -> {self.after}{change}{self.note}"


@dataclass(frozen=True)
class Part:
    """What is said of one allocator, or of time: ``title`` names it."""

    title: str
    changes: Sequence[Change]
    notes: Sequence[str]
    tables: Sequence[Table]
    is_empty: bool


def facts_text(facts: ProfileFacts) -> str:
    """Which profile it is."""
    host = f", host {facts.host}" if facts.host else ""
    # Where the file has no records, it is of one moment.
    length = "" if facts.is_moment or not facts.duration_ps else f", {time_text(facts.duration_ps)}"
    return f"{facts.path} ({facts.format}{host}{length})"


def findings_of(result: Comparison, which: str) -> list[Finding]:
    """The findings that are ``new``, ``worse`` or ``gone``, of memory, then of time."""
    of_time = [] if result.time is None else getattr(result.time, f"{which}_findings")
    return [*getattr(result.memory, f"{which}_findings"), *of_time]


def diff_document(comparison: Comparison) -> dict[str, object]:
    """What ``peakline diff --json`` prints of two profiles."""
    said = {"is_empty": comparison.is_empty, "sentences": change_sentences(comparison)}
    return comparison.as_json() | said


def change_sentences(comparison: Comparison) -> list[str]:
    """What changed most, of memory and then of time, in a sentence for each; nothing of what
    cannot be compared.
    """
    both = [one for one in comparison.memory.allocators if one.before and one.after]
    largest = max(both, key=lambda one: abs(one.peak_delta_bytes), default=None)
    memory = [] if largest is None else [_memory_sentence(largest)]
    return memory + ([] if comparison.time is None else _time_sentence(comparison.time))


def _memory_sentence(diff: AllocatorDiff) -> str:
    before, after = diff.before, diff.after
    if before is None or after is None:
        raise ValueError("an allocator of one profile alone")
    name = f"allocator {diff.allocator}" if diff.allocator.isdecimal() else diff.allocator
    delta = diff.peak_delta_bytes
    if delta:
        moved = change_of("", before.peak_bytes, after.peak_bytes).text
        text = f"The memory peak of {name} is {'higher' if delta > 0 else 'lower'}: {moved}"
        first = max(diff.groups, key=lambda row: abs(row.delta_bytes), default=None)
        if first is not None and first.kind.op and first.delta_bytes * delta > 0:
            text += f", most of it {first.kind.op} ({signed_size(first.delta_bytes)})"
    else:
        text = f"The memory peak of {name} is the same, {size_text(after.peak_bytes)}"
    more = (after.growth_per_step or 0) - (before.growth_per_step or 0)
    if abs(more) > GROWS * after.peak_bytes:
        grown = max(diff.growth, key=lambda row: abs(row.delta_bytes), default=None)
        of = f" of {grown.kind.op}" if grown is not None and grown.kind.op else ""
        text += (
            f"; with every step {size_text(more)} more{of} stay in memory than before"
            if more > 0
            else f"; {size_text(-more)}{of} a step no longer stay in memory"
        )
    return f"{text}."


def _time_sentence(diff: TimeDiff) -> list[str]:
    before, after = diff.before.times, diff.after.times
    if before is None or after is None:
        return []
    if diff.is_chance:
        return ["Step times differ no more than chance makes them."]
    delta = after.median_ps - before.median_ps
    text: Callable[[float], str] = lambda value: time_text(round(value))  # noqa: E731
    moved = change_of("", before.median_ps, after.median_ps, text).text
    first = max(diff.ops, key=lambda row: abs(row.delta_ps), default=None)
    why = ""
    if first is not None and first.delta_ps * delta > 0:
        more = "more" if delta > 0 else "less"
        why = f"; {first.op} takes {time_text(abs(first.delta_ps))} {more}"
    return [f"The median step is {'slower' if delta > 0 else 'quicker'}: {moved}{why}."]


def memory_parts(result: Comparison) -> tuple[list[Part], str]:
    """What changed in each allocator; of very many in the first that changed, and how many more
    there are.
    """
    shown: Sequence[AllocatorDiff] = result.memory.allocators
    if (count := len(shown)) > _ALLOCATORS:
        shown = [one for one in shown if not one.is_empty][:_ALLOCATORS]
    more = count - len(shown)
    return [_memory_part(one) for one in shown], more_text(more, "allocator", ALL_IN_JSON)


def _memory_part(diff: AllocatorDiff) -> Part:
    """What changed in an allocator."""
    title, one, other = allocator_text(diff.allocator), diff.before, diff.after
    if one is None or other is None:
        peaks = (
            _ABSENT if state is None else _known(None if state.peak_unknown else state.peak_bytes)
            for state in (one, other)
        )
        peak = Change("peak", *peaks)
        title += " (only after)" if one is None else " (only before)"
        return Part(title, [peak], diff.notes, _some(_alone(diff)), is_empty=False)
    tables = _some(
        _categories(diff),
        changed_table("what changed at the peak", diff.groups[:_ROWS], rest_of(diff.groups)),
        _per_step("what every step leaves", diff.growth, _ROWS),
        _churn(diff, one, other),
    )
    changes = list(_changes(one, other))
    return Part(title, changes, diff.notes, tables, diff.is_empty)


def time_part(diff: TimeDiff) -> Part:
    """Steps, what their time goes to, and ops."""
    tables = _some(_parts(diff), _ops(diff))
    return Part("time", list(_times(diff)), diff.notes, tables, diff.is_empty)


def _some(*tables: Table) -> list[Table]:
    return [table for table in tables if table.rows]


def change_of(
    label: str,
    before: float | None,
    after: float | None,
    text: Callable[[float], str] = size_text,
    *,
    note: str = "",
    prefix: str = "",
) -> Change:
    """A figure of both profiles, None where it is not known, and by how much it changed."""
    one, other = _known(before, text), _known(after, text)
    change = "as before"
    if before is None or after is None:
        change = ""
    elif before != after:
        sign = "+" if after > before else ""
        change = f"{sign}{text(after - before)}"
        if before > 0 and after <= FAR * before:
            change += f" ({after / before - 1:+.1%})"
    return Change(label, prefix + one, other, change, note)


def _known(value: float | None, text: Callable[[float], str] = size_text) -> str:
    return "not known" if value is None else text(value)


def _changes(one: AllocatorState, other: AllocatorState) -> Iterator[Change]:
    before, after = (None if side.peak_unknown else side.peak_bytes for side in (one, other))
    yield change_of("peak", before, after)
    if one.steps != other.steps:
        yield _counts("steps", one.steps, other.steps)
    growth = one.growth_per_step, other.growth_per_step
    if any(growth):
        yield change_of("growth per step", *growth)
        for state, side in ((one, "before"), (other, "after")):
            if state.growth_unknown:
                yield Change("", f"not known {side}: {state.growth_unknown}", "")
    if one.allocated_per_step != other.allocated_per_step:
        times = ""
        if one.turnover is not None and other.turnover is not None:
            times = f"; {one.turnover:.1f} -> {other.turnover:.1f} times the peak"
        per_step = one.allocated_per_step, other.allocated_per_step
        yield change_of("allocated per step", *per_step, note=times)
    if one.fragmentation != other.fragmentation:
        made = [
            f", {side} made from addresses"
            for state, side in ((one, "the first"), (other, "the second"))
            if state.fragmentation_rebuilt
        ]
        how = ", both made from addresses" if len(made) == 2 else "".join(made)
        old, new = (_known(state.fragmentation, "{:.1%}".format) for state in (one, other))
        yield Change("fragmentation", old, new, note=f" at the peak{how}")


def _counts(label: str, before: int | None, after: int | None) -> Change:
    return Change(label, *(_known(count, "{:,}".format) for count in (before, after)))


def _times(diff: TimeDiff) -> Iterator[Change]:
    before, after = diff.before, diff.after
    if before.steps != after.steps:
        yield _counts("steps", before.steps or None, after.steps or None)
    one, other = before.times, after.times
    if not (before.steps and after.steps):
        return

    def change(label: str, old: int, new: int, note: str = "", prefix: str = "") -> Change:
        text: Callable[[float], str] = lambda value: time_text(round(value))  # noqa: E731
        return change_of(label, old, new, text, note=note, prefix=prefix)

    if one is not None and other is not None:
        yield change("step time", one.median_ps, other.median_ps, " (median)")
        yield change("shortest", one.min_ps, other.min_ps)
        yield change("95 of 100", one.p95_ps, other.p95_ps, prefix="within ")
        yield change("mean", one.mean_ps, other.mean_ps)
    if before.between_ps or after.between_ps:
        yield change("between steps", before.between_ps, after.between_ps, " (median)")


def what_cells(kind: Kind) -> tuple[str, ...]:
    """The cells of `WHAT`."""
    return (kind.op or "(no op)", kind.region_type, kind.data_type, kind.shape)


WHAT = {"op": "name", "region": "form", "type": "form", "shape": "form"}
_HAPPENED = {"what happened": "remark"}


def _alone(diff: AllocatorDiff) -> Table:
    """What is largest at the peak of an allocator that is new or gone."""
    rows = [
        (abs(row.delta_bytes), row.before_count + row.after_count or "", *what_cells(row.kind))
        for row in diff.groups
    ]
    columns = columns_of("size", "count", **WHAT)
    return Table("live at the peak", columns, rows[:_ROWS], rest_of(diff.groups))


def rest_of(groups: Sequence[GroupDiff]) -> Row:
    """How many groups are not among the first, and what they add up to."""
    hidden = groups[_ROWS:]
    return (len(hidden), signed_size(sum(row.delta_bytes for row in hidden))) if hidden else ()


def changed_table(
    title: str, rows: Iterable[GroupDiff | RateDiff], rest: Row, delta: str = "change"
) -> Table:
    """What changed of each kind of buffers; ``delta`` is the heading of by how much."""
    columns = columns_of(
        **{delta: "signed"}, before="bytes", after="bytes", **WHAT, category="form", module="form",
        **_HAPPENED,
    )  # fmt: skip
    cells: list[Row] = [
        (
            signed_size(row.delta_bytes),
            row.before_bytes,
            row.after_bytes,
            *what_cells(row.kind),
            *(row.purpose if isinstance(row, GroupDiff) else NO_PURPOSE),
            row.text,
        )
        for row in rows
    ]
    return Table(title, columns, cells, rest).without_empty()


def _categories(diff: AllocatorDiff) -> Table:
    """What the buffers at the two peaks are for."""
    rows = [
        (signed_size(after - before), before, after, category or NOT_KNOWN)
        for category, before, after in diff.categories
    ]
    columns = columns_of(change="signed", before="bytes", after="bytes", category="form")
    return Table("by category", columns, rows)


def _churn(diff: AllocatorDiff, one: AllocatorState, other: AllocatorState) -> Table:
    """What a step allocates more or less of, without pieces of another size of the same."""
    whole = max(one.allocated_per_step or 0, other.allocated_per_step or 0)
    rows = [
        row for row in diff.churn if abs(row.delta_bytes) >= _CHURN * whole and not row.is_pieces
    ]
    return _per_step("what a step allocates", rows, _CHURN_ROWS)


def _per_step(title: str, rates: Sequence[RateDiff], most: int) -> Table:
    rest = (len(rates) - most,) if len(rates) > most else ()
    return changed_table(title, rates[:most], rest, "per step")


def _parts(diff: TimeDiff) -> Table:
    times = [state.times.mean_ps for state in (diff.before, diff.after) if state.times]
    least = _LEAST * max(times, default=0)
    rows = [
        (signed_time(one.delta_ps), one.before_ps, one.after_ps, one.words)
        for one in diff.parts
        if abs(one.delta_ps) >= least
    ]
    columns = columns_of(change="signed", before="ps", after="ps", **{"": ""})
    return Table("where the mean step's time goes", columns, rows)


def _ops(diff: TimeDiff) -> Table:
    each = "per step" if diff.by_step else "in the whole profile"
    return ops_table(f"ops whose self time changed most, {each}", diff.ops, _ROWS)


def ops_table(title: str, ops: Sequence[OpChange], most: int) -> Table:
    """The first ``most`` of ops that changed."""
    rows = [
        (signed_time(one.delta_ps), one.before_ps, one.after_ps, one.side, one.op, one.text)
        for one in ops[:most]
    ]
    columns = columns_of(change="signed", before="ps", after="ps", on="", op="name", **_HAPPENED)
    return Table(title, columns, rows, (len(ops) - most,) if len(ops) > most else ())
