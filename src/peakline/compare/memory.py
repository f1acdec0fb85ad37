"""What changed between two profiles, of any formats: peaks, what makes them, growth, churn.

Allocators and kinds of buffers are matched by `peakline.compare.matching`. What only one of
the two profiles has (ops, regions, types or shapes) is left out of both, with a note, for a
column that one side lacks would make every row new and gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from peakline.compare.matching import match_allocators, match_kinds, stem_of
from peakline.compare.rows import GroupDiff, RateDiff, group_rows, notes_on, rate_rows
from peakline.compare.state import (
    SPECIAL,
    AllocatorState,
    Kind,
    MemoryState,
    groups_of,
    purposes_of,
    rates_of,
    state_of,
)
from peakline.errors import NotFoundError
from peakline.findings.finding import Finding
from peakline.findings.memory_answer import MemoryAnswer
from peakline.findings.ranking import is_worse
from peakline.shown import Brief
from peakline.suggest import there_is

_DESCRIBED, _SILENT = 0.5, 0.1
"""A column that one profile has for half of its bytes at the peak or more, and the other for less
than a tenth, is not compared."""
_COLUMNS = {"op": "ops", "region_type": "regions", "data_type": "types", "shape": "shapes"}


@dataclass(frozen=True, repr=False)
class AllocatorDiff(Brief):
    """What changed in one allocator; ``before`` or ``after`` is None where it is new or gone.

    ``groups`` are the kinds that changed at the peak; their deltas add up to the peak's.
    ``growth`` are kinds that leak more or less, ``churn`` kinds of which a step allocates more or
    less (both empty where either profile has no steps). All are sorted by what changed most.
    ``notes`` say, in one line each, what to bear in mind about the comparison.
    """

    before: AllocatorState | None
    after: AllocatorState | None
    groups: tuple[GroupDiff, ...]
    growth: tuple[RateDiff, ...]
    churn: tuple[RateDiff, ...]
    notes: tuple[str, ...]

    @property
    def allocator(self) -> str:
        """Its name in the later profile, or in the earlier one where it is gone."""
        state = self.before if self.after is None else self.after
        return "" if state is None else state.allocator

    @property
    def peak_delta_bytes(self) -> int:
        """The peak after less the peak before; an allocator that is not there has none."""
        before = 0 if self.before is None else self.before.peak_bytes
        after = 0 if self.after is None else self.after.peak_bytes
        return after - before

    @property
    def categories(self) -> list[tuple[str, int, int]]:
        """Category, bytes at the peak before and after, of those that changed, most first; nothing
        where not both profiles say what buffers are for.
        """
        if not (self.before and self.after and self.before.categories and self.after.categories):
            return []
        old, new = self.before.categories, self.after.categories
        rows = [(one, old.get(one, 0), new.get(one, 0)) for one in {**new, **old}]
        changed = [row for row in rows if row[1] != row[2]]
        return sorted(changed, key=lambda row: -abs(row[2] - row[1]))

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        if self.before is None or self.after is None:
            return False
        one, other = self.before, self.after
        return not (self.groups or self.growth or self.churn) and (
            one.peak_bytes == other.peak_bytes
            and one.growth_per_step == other.growth_per_step
            and one.fragmentation == other.fragmentation
            and one.allocated_per_step == other.allocated_per_step
        )

    def as_json(self) -> dict[str, object]:
        """One of ``allocators`` in ``peakline diff --json``."""
        return {
            "allocator": self.allocator,
            "before": None if self.before is None else self.before.as_json(),
            "after": None if self.after is None else self.after.as_json(),
            "peak_delta_bytes": self.peak_delta_bytes,
            "categories": [
                {
                    "category": category,
                    "before_bytes": before,
                    "after_bytes": after,
                    "delta_bytes": after - before,
                }
                for category, before, after in self.categories
            ],
            "groups": [group.as_json() for group in self.groups],
            "growth": [rate.as_json() for rate in self.growth],
            "churn": [rate.as_json() for rate in self.churn],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, repr=False)
class MemoryDiff(Brief):
    """What changed between two memory answers.

    A finding is new or gone by its kind, its allocator and the op it names, whatever its numbers;
    one that both have is worse when it says that more is lost (`peakline.findings.ranking`).
    """

    allocators: tuple[AllocatorDiff, ...]
    new_findings: tuple[Finding, ...] = ()
    gone_findings: tuple[Finding, ...] = ()
    worse_findings: tuple[Finding, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        findings = self.new_findings or self.gone_findings or self.worse_findings
        return not findings and all(one.is_empty for one in self.allocators)

    def only(self, allocator: str) -> MemoryDiff:
        """What changed in the allocator of that name; NotFoundError if neither profile has it."""

        def names(one: AllocatorDiff) -> set[str]:
            return {state.allocator for state in (one.before, one.after) if state is not None}

        chosen = [one for one in self.allocators if allocator in names(one)]
        if not chosen:
            known = sorted(set().union(*map(names, self.allocators)))
            listed = there_is(allocator, known)
            raise NotFoundError(f"no allocator {allocator!r} in either profile{listed}")
        wanted = set().union(*map(names, chosen))

        def mine(findings: Iterable[Finding]) -> tuple[Finding, ...]:
            return tuple(one for one in findings if one.evidence.get("allocator") in wanted)

        return MemoryDiff(
            tuple(chosen),
            mine(self.new_findings),
            mine(self.gone_findings),
            mine(self.worse_findings),
        )

    def as_json(self) -> dict[str, object]:
        """The shape of ``peakline diff --json``."""
        return {
            "allocators": [one.as_json() for one in self.allocators],
            "findings": {
                "new": [finding.as_json() for finding in self.new_findings],
                "gone": [finding.as_json() for finding in self.gone_findings],
                "worse": [finding.as_json() for finding in self.worse_findings],
            },
        }


def compare(before: MemoryAnswer | MemoryState, after: MemoryAnswer | MemoryState) -> MemoryDiff:
    """What changed from ``before`` to ``after``, allocator by allocator.

    The allocators are in the order of ``after``; those that are gone come last.
    """
    old = before if isinstance(before, MemoryState) else state_of(before)
    new = after if isinstance(after, MemoryState) else state_of(after)
    pairs = match_allocators(
        [one.allocator for one in old.allocators], [one.allocator for one in new.allocators]
    )
    result = [
        _allocator(
            None if pair.before is None else old.allocators[pair.before],
            None if pair.after is None else new.allocators[pair.after],
            pair.note,
        )
        for pair in pairs
    ]
    names: dict[object, str] = {
        old.allocators[pair.before].allocator: new.allocators[pair.after].allocator
        for pair in pairs
        if pair.before is not None and pair.after is not None
    }

    def renamed(finding: Finding) -> tuple[object, ...]:
        kind, allocator, op = _key(finding)
        return kind, names.get(allocator, allocator), op

    return MemoryDiff(
        tuple(result),
        without(new.findings, map(renamed, old.findings), _key),
        without(old.findings, map(_key, new.findings), renamed),
        worse(old.findings, new.findings, renamed, _key),
    )


def worse(
    before: Iterable[Finding],
    after: Iterable[Finding],
    key_before: Callable[[Finding], tuple[object, ...]],
    key: Callable[[Finding], tuple[object, ...]],
) -> tuple[Finding, ...]:
    """The findings of ``after`` that ``before`` has too, and that say that more is lost."""
    known = {key_before(finding): finding for finding in before}
    shared = ((known.get(key(finding)), finding) for finding in after)
    return tuple(new for old, new in shared if old is not None and is_worse(old, new))


def without(
    findings: Iterable[Finding],
    others: Iterable[tuple[object, ...]],
    key: Callable[[Finding], tuple[object, ...]],
) -> tuple[Finding, ...]:
    """The findings whose ``key`` is not among the keys ``others``."""
    known = set(others)
    return tuple(finding for finding in findings if key(finding) not in known)


def _key(finding: Finding) -> tuple[object, ...]:
    op = finding.evidence.get("op")
    allocator = finding.evidence.get("allocator")
    return finding.kind, allocator, stem_of(op) if isinstance(op, str) else ""


def _allocator(
    before: AllocatorState | None, after: AllocatorState | None, note: str
) -> AllocatorDiff:
    notes = [note] if note else []
    if before is None or after is None:
        groups = group_rows(before, after, match_kinds(_kinds(before), _kinds(after)))
        return AllocatorDiff(before, after, groups, (), (), tuple(notes))
    silent: dict[str, list[str]] = {}
    for column, title in _COLUMNS.items():
        shares = _described_share(before, column), _described_share(after, column)
        if min(shares) < _SILENT and max(shares) >= _DESCRIBED:
            silent.setdefault("earlier" if shares[0] < shares[1] else "later", []).append(title)
            before, after = _blank(before, column), _blank(after, column)
    notes += [
        f"the {side} profile has no {' and no '.join(titles)}, so they are not compared"
        for side, titles in silent.items()
    ]
    pairs = match_kinds(_kinds(before), _kinds(after))
    groups = group_rows(before, after, pairs)
    steps = before.steps is not None and after.steps is not None
    return AllocatorDiff(
        before,
        after,
        groups,
        rate_rows(before.leaks, after.leaks, pairs) if steps else (),
        rate_rows(before.churn, after.churn, pairs) if steps else (),
        (*notes, *notes_on(before, after, groups)),
    )


def _kinds(state: AllocatorState | None) -> set[Kind]:
    """All kinds that the state knows, at the peak or not."""
    if state is None:
        return set()
    return {row.kind for rows in (state.groups, state.leaks) for row in rows} | (
        state.kinds or set()
    )


def _described_share(state: AllocatorState, column: str) -> float:
    """The share of the bytes at the peak whose rows have the column; those of no op left out."""
    rows = [group for group in state.groups if group.kind.op not in SPECIAL]
    described = sum(group.bytes for group in rows if getattr(group.kind, column))
    whole = sum(group.bytes for group in rows)
    # Where there is nothing, nothing is missing either.
    return described / whole if whole else _SILENT


def _blank(state: AllocatorState, column: str) -> AllocatorState:
    def blank(kind: Kind) -> Kind:
        return kind if kind.op in SPECIAL else Kind(**(kind.as_json() | {column: ""}))

    return replace(
        state,
        groups=groups_of((blank(row.kind), row.bytes, row.count) for row in state.groups),
        leaks=rates_of(
            (blank(row.kind), row.bytes_per_step, row.count_per_step) for row in state.leaks
        ),
        churn=rates_of(
            (blank(row.kind), row.bytes_per_step, row.count_per_step) for row in state.churn
        ),
        kinds=None if state.kinds is None else frozenset(map(blank, state.kinds)),
        purposes=purposes_of((blank(kind), one) for kind, one in state.purposes.items()),
    )
