"""What the peak is made of: by scope of the ops' names, and by op."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from peakline.render.document.live import LiveRow, category_table, live_rows, live_table
from peakline.render.document.model import Table, Value, columns_of
from peakline.render.html.context import Part
from peakline.render.html.html import Child, Markup, code, join, tag
from peakline.text import counted

_FIRST = 3
_SCOPES = 24
_LEAST = 0.02
"""A scope with less than this share of the peak has no row of its own."""
_DEEPEST = 40
"""So many levels of scopes are shown."""

_MEANINGS = {
    "(before profile)": "in memory before the profile began, so nothing says what made it",
    "(unattributed)": "in use as the allocator reports, but no buffer of the file explains it",
    "(reserved)": "what the allocator reported as reserved outside its heap",
    "(no op)": "the records name no op",
}


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
    rows = live_rows(peak.peak_buffers, context.labels)
    scopes = list(_scopes(rows, peak.peak_bytes))
    told: list[Child] = [tag("p", _sentence(part, rows)), _meanings(rows)]
    equivalent = None
    if scopes:
        caption = (
            f"By scope: what stands before the slashes of an op's name. A scope has what its inner "
            f"scopes have; those under {_LEAST:.0%} are not listed"
        )
        cells = [
            (name, one.bytes, f"{one.bytes / max(peak.peak_bytes, 1):.1%}", one.count)
            for name, one in scopes
        ]
        columns = columns_of("size", "share", "count", scope="name")
        equivalent = context.tables.write(Table(caption, columns, cells))
    where = "memory" if context.is_moment else "the peak"
    if len({row.what[0] for row in rows}) > 1:
        told.append(
            context.drawings.of_part(
                "peak_icicle",
                part,
                f"Composition of {where} by {'scope' if scopes else 'op'}",
                equivalent,
            )
        )
    elif equivalent:
        told.append(equivalent)
    categories = category_table(peak)
    if categories.rows:
        told.append(context.tables.write(categories))
    told.append(_ops(part, rows))
    return join(told)


def _sentence(part: Part, rows: list[LiveRow]) -> str:
    total = part.peak.peak_bytes
    buffers = sum(row.count for row in rows)
    share = sum(row.bytes for row in rows[:_FIRST]) / total if total else 0.0
    made = {row.what[0] for row in rows if row.count}
    ops = counted(len(made - {"(no op)"}), "op")
    of = "whose op is not known" if made <= {"(no op)"} else f"of {ops}"
    if "(no op)" in made and len(made) > 1:
        of += " and without one"
    told = f"{counted(buffers, 'buffer')} {of}"
    if len(rows) == 1:
        return f"{told}, all alike."
    if len(rows) <= _FIRST:
        return f"{told}."
    return f"{told}; the largest {_FIRST} rows of the table have {share:.1%} of the bytes."


def _meanings(rows: list[LiveRow]) -> Markup | None:
    told = [
        tag("li", code(name), f": {meaning}.")
        for name, meaning in _MEANINGS.items()
        if any(row.what[0] == name for row in rows)
    ]
    return tag("ul", *told, class_="notes") if told else None


def _ops(part: Part, rows: list[LiveRow]) -> Markup:
    title = "by op" if part.context.is_moment else "by op; the bytes add up to the peak"
    table = live_table(rows, title)
    whole: dict[str, Value] = {"op": "All of it", "size": part.peak.peak_bytes, "share": "100.0%"}
    whole["count"] = sum(row.count for row in rows)
    foot = [whole.get(column.label, "") for column in table.columns]
    return part.context.tables.write(table, foot=foot)


def _scopes(rows: list[LiveRow], total: int) -> Iterator[tuple[str, _Scope]]:
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
