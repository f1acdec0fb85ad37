"""What the peak is made of: by scope of the ops' names, and by op."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peakline.memory.signatures import normal_shape
from peakline.render.html.context import Part
from peakline.render.html.html import Child, Markup, code, join, tag
from peakline.render.html.tables import Column, Table
from peakline.render.html.words import count, form, percent, share_bar, size
from peakline.text import shares_text

if TYPE_CHECKING:
    from peakline.memory.peak import AllocatorPeak, PeakBuffer

__all__ = ["composition", "largest_op"]

_ROWS = 20
_FIRST = 3
_SCOPES = 24
_LEAST = 0.02
"""A scope with less than this share of the peak has no row of its own."""
_DEEPEST = 40
"""So many levels of scopes are told apart."""

_LABELS = ("Op", "Region", "Type", "Shape")

_MEANINGS = {
    "(before profile)": "in memory before the profile began, so nothing tells who made it",
    "(unattributed)": "in use as the allocator reports, but no buffer of the file explains it",
    "(reserved)": "what the allocator reported as reserved outside its heap",
    "(no op)": "the records name no op",
}


@dataclass
class _Row:
    """Buffers of one op, region, type and shape."""

    what: tuple[str, str, str, str]
    bytes: int = 0
    count: int = 0
    steps: set[int] = field(default_factory=set)


@dataclass
class _Scope:
    """A scope with everything in it."""

    bytes: int = 0
    count: int = 0
    inner: dict[str, _Scope] = field(default_factory=dict)


def composition(part: Part) -> Markup | None:
    """The icicle, the scopes and the ops of the peak; nothing for an empty one."""
    peak, context = part.peak, part.context
    if not peak.peak_buffers:
        return None
    rows = _merged(peak.peak_buffers)
    scopes = list(_scopes(rows, peak.peak_bytes))
    told: list[Child] = [tag("p", _sentence(part, rows)), _meanings(rows)]
    equivalent = None
    if scopes:
        caption = (
            f"By scope: what stands before the slashes of an op's name. A scope has what its inner "
            f"scopes have; those under {_LEAST:.0%} are not listed"
        )
        cells = [
            (
                code(name),
                size(one.bytes),
                share_bar(one.bytes, peak.peak_bytes),
                one.count,
            )
            for name, one in scopes
        ]
        columns = (Column("Scope"), *_NUMBERS)
        equivalent = context.tables.write(Table(caption, columns, cells))
    where = "memory" if context.is_moment else "the peak"
    if len({row.what[0] for row in rows}) > 1:
        told.append(
            context.drawings.figure(
                "peak_icicle",
                part,
                f"Composition of {where} by {'scope' if scopes else 'op'}",
                _sentence(part, rows),
                equivalent,
            )
        )
    elif equivalent:
        told.append(equivalent)
    told.append(_ops(part, rows))
    return join(told)


def largest_op(peak: AllocatorPeak) -> tuple[str, int] | None:
    """The op with most bytes at a peak, and how many; None where none is named.

    What stands for memory without an op, as ``(before profile)`` does, is none.
    """
    sizes: dict[str, int] = {}
    for buffer in peak.peak_buffers:
        if buffer.op and buffer.op not in _MEANINGS:
            sizes[buffer.op] = sizes.get(buffer.op, 0) + buffer.bytes
    if not sizes:
        return None
    op = max(sizes, key=lambda one: (sizes[one], one))
    return op, sizes[op]


_NUMBERS = (
    Column("Bytes", is_number=True),
    Column("Share", is_number=True),
    Column("Buffers", is_number=True),
)


def _sentence(part: Part, rows: list[_Row]) -> str:
    total = part.peak.peak_bytes
    buffers = sum(row.count for row in rows)
    share = sum(row.bytes for row in rows[:_FIRST]) / total if total else 0.0
    made = {row.what[0] for row in rows if row.count}
    of = "whose op is not known" if made <= {""} else f"of {count(len(made - {''}), 'op')}"
    if "" in made and len(made) > 1:
        of += " and without one"
    told = f"{count(buffers, 'buffer')} {of}"
    if len(rows) == 1:
        return f"{told}, all alike."
    if len(rows) <= _FIRST:
        return f"{told}."
    return f"{told}; the largest {_FIRST} rows of the table have {percent(share)} of the bytes."


def _meanings(rows: list[_Row]) -> Markup | None:
    told = [
        tag("li", code(name), f": {meaning}.")
        for name, meaning in _MEANINGS.items()
        if any((row.what[0] or "(no op)") == name for row in rows)
    ]
    return tag("ul", *told, class_="notes") if told else None


def _ops(part: Part, rows: list[_Row]) -> Markup:
    peak, context = part.peak, part.context
    has_steps = any(row.steps for row in rows)
    labels = [k for k in (1, 2, 3) if any(row.what[k] for row in rows)]
    columns = [Column("Op"), *_NUMBERS, *(Column(_LABELS[k]) for k in labels)]
    if has_steps:
        columns.append(Column("Made in step"))
    told: list[list[Child]] = []
    hidden = rows[_ROWS:]
    rest = sum(row.bytes for row in hidden)
    *shares, left = shares_text([*(row.bytes for row in rows[:_ROWS]), rest])
    for row, share in zip(rows[:_ROWS], shares, strict=True):
        cells: list[Child] = [
            code(row.what[0] or "(no op)"),
            size(row.bytes),
            share_bar(row.bytes, peak.peak_bytes, share),
            f"{row.count:,}" if row.count else "",
            *(form(row.what[k]) for k in labels),
        ]
        if has_steps:
            cells.append(_steps(part, row.steps))
        told.append(cells)
    blank: list[Child] = [""] * (len(columns) - 4)
    if hidden:
        buffers = sum(row.count for row in hidden)
        bar = share_bar(rest, peak.peak_bytes, left)
        told.append([f"{len(hidden):,} more rows", size(rest), bar, f"{buffers:,}", *blank])
    total = sum(row.count for row in rows)
    whole = share_bar(peak.peak_bytes, peak.peak_bytes)
    foot = ["All of it", size(peak.peak_bytes), whole, f"{total:,}", *blank]
    caption = "By op" if context.is_moment else "By op; the bytes add up to the peak"
    return context.tables.write(Table(caption, columns, told, foot=foot))


def _steps(part: Part, steps: set[int]) -> str:
    if len(steps) > 1:
        return f"{len(steps):,} steps"
    return part.context.steps.label(next(iter(steps), None))


def _merged(buffers: tuple[PeakBuffer, ...]) -> list[_Row]:
    """The rows of the answer, those that differ in the step only in one."""
    rows: dict[tuple[str, str, str, str], _Row] = {}
    for buffer in buffers:
        shape = normal_shape(buffer.shape)
        what = (buffer.op, buffer.region_type, buffer.data_type, shape)
        row = rows.setdefault(what, _Row(what))
        row.bytes += buffer.bytes
        row.count += buffer.count
        if buffer.start_step is not None:
            row.steps.add(buffer.start_step)
    return sorted(rows.values(), key=lambda row: (-row.bytes, row.what))


def _scopes(rows: list[_Row], total: int) -> Iterator[tuple[str, _Scope]]:
    """Scopes with a part of the peak worth a row, each before its inner ones."""
    root = _Scope()
    for row in rows:
        here = root
        for name in row.what[0].split("/", _DEEPEST)[:-1]:
            here = here.inner.setdefault(name, _Scope())
            here.bytes += row.bytes
            here.count += row.count
    found = 0
    stack = [("", root)]
    while stack and found < _SCOPES:
        path, here = stack.pop()
        if path and not _is_only_a_shell(here):
            found += 1
            yield path, here
        inner = sorted(here.inner.items(), key=lambda one: one[1].bytes)
        stack += [
            (f"{path}/{name}" if path else name, one)
            for name, one in inner
            if one.bytes >= _LEAST * total
        ]


def _is_only_a_shell(scope: _Scope) -> bool:
    """Whether one inner scope has all there is."""
    inner = list(scope.inner.values())
    return len(inner) == 1 and inner[0].bytes == scope.bytes
