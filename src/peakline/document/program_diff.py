"""What is said of the difference between the compiled programs of two profiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peakline.compare.programs import ProgramDiff
from peakline.compare.rows import signed_size
from peakline.compare.state import ProgramState
from peakline.document.diff import Change, Part, change_of, changed_table, rest_of
from peakline.document.model import Row, Table, columns_of
from peakline.text import number_text, size_text

_ROWS = 12
_DETAILED = 4
"""So many programs are shown in full, those whose peak changed most."""
_SIZES = {
    "peak_bytes": ("peak", size_text),
    "argument_bytes": ("arguments", size_text),
    "output_bytes": ("outputs", size_text),
    "temporary_bytes": ("temporaries", size_text),
}
_COSTS = {"flops": ("flops", number_text), "bytes_accessed": ("read and written", size_text)}
_COLUMNS = columns_of(change="signed", before="bytes", after="bytes", program="name",
                      what_happened="remark")  # fmt: skip


def program_parts(programs: Sequence[ProgramDiff]) -> list[Part]:
    """All programs in short, then those that changed most; nothing without programs."""
    if not programs:
        return []
    old, new = ([state for state in side if state] for side in zip(
        *((one.before, one.after) for one in programs), strict=True))  # fmt: skip
    changed = sorted(
        (one for one in programs if not one.is_empty),
        key=lambda one: (-abs(one.peak_delta_bytes or 0), -one.peak_bytes, one.label),
    )
    whole = Part(
        "compiled programs",
        list(_counts(old, new)),
        [],
        _list(changed) if old and new else [],
        is_empty=not changed,
    )
    both = [one for one in changed if one.before and one.after]
    return [whole, *map(_detail, both[:_DETAILED])]


def _counts(old: Sequence[ProgramState], new: Sequence[ProgramState]) -> Iterator[Change]:
    if len(old) != len(new):
        yield Change("programs", f"{len(old):,}", f"{len(new):,}")
    if old and new:
        yield change_of("largest peak", _largest(old), _largest(new))


def _largest(states: Sequence[ProgramState]) -> int | None:
    known = [one.peak_bytes for one in states if one.peak_bytes is not None]
    return max(known, default=None)


def _list(changed: Sequence[ProgramDiff]) -> list[Table]:
    rows: list[Row] = [
        (
            "" if (delta := one.peak_delta_bytes) is None else signed_size(delta),
            "" if one.before is None else one.before.peak_bytes,
            "" if one.after is None else one.after.peak_bytes,
            one.label,
            _happened(one),
        )
        for one in changed[:_ROWS]
    ]
    rest = (len(changed) - _ROWS,) if len(changed) > _ROWS else ()
    return [Table("what each needs", _COLUMNS, rows, rest)] if rows else []


def _happened(one: ProgramDiff) -> str:
    if one.before is None or one.after is None:
        return "new" if one.before is None else "gone"
    if one.before.name != one.after.name:
        return f"was {one.before.label}"
    if one.peak_delta_bytes:
        return ""
    figures = (*_SIZES, *_COSTS)
    same = all(getattr(one.before, name) == getattr(one.after, name) for name in figures)
    return "other values at the peak" if same else "the same peak"


def _detail(one: ProgramDiff) -> Part:
    changes = []
    for name, (label, text) in (_SIZES | _COSTS).items():
        before, after = getattr(one.before, name), getattr(one.after, name)
        if before != after or name == "peak_bytes":
            changes.append(change_of(label, before, after, text))
    table = changed_table("what changed at the peak", one.groups[:_ROWS], rest_of(one.groups))
    return Part(one.label, changes, one.notes, [table] if table.rows else [], is_empty=False)
