"""What is said of what a peak is made of: by scope of the ops' names, and by op."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from peakline.document.live import LiveRow, live_table
from peakline.document.model import Table, Value, columns_of
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


def scopes_table(rows: Sequence[LiveRow], peak_bytes: int) -> Table:
    """The scopes of ops with a part of the peak worth a row, each before its inner ones."""
    title = (
        f"By scope: what stands before the slashes of an op's name. A scope has what its inner "
        f"scopes have; those under {_LEAST:.0%} are not listed"
    )
    cells = [
        (name, one.bytes, f"{one.bytes / max(peak_bytes, 1):.1%}", one.count)
        for name, one in _scopes(rows, peak_bytes)
    ]
    return Table(title, columns_of("size", "share", "count", scope="name"), cells)


def composition_sentence(rows: Sequence[LiveRow], peak_bytes: int) -> str:
    """Of how many buffers and ops the peak is, and how much of it the largest rows have."""
    buffers = sum(row.count for row in rows)
    share = sum(row.bytes for row in rows[:_FIRST]) / peak_bytes if peak_bytes else 0.0
    made = {row.what[0] for row in rows if row.count}
    ops = counted(len(made - {"(no op)"}), "op")
    of = "whose op is not known" if made <= {"(no op)"} else f"of {ops}"
    if "(no op)" in made and len(made) > 1:
        of += " and without one"
    text = f"{counted(buffers, 'buffer')} {of}"
    if len(rows) == 1:
        return f"{text}, all alike."
    if len(rows) <= _FIRST:
        return f"{text}."
    return f"{text}; the largest {_FIRST} rows of the table have {share:.1%} of the bytes."


def meanings(rows: Sequence[LiveRow]) -> list[tuple[str, str]]:
    """What stands in place of an op in these rows, and what it means."""
    names = {row.what[0] for row in rows}
    return [(name, meaning) for name, meaning in _MEANINGS.items() if name in names]


def by_op_table(
    rows: Sequence[LiveRow], peak_bytes: int, *, moment: bool
) -> tuple[Table, list[Value]]:
    """The largest buffers by op, and a row that has all of it; of the one ``moment`` of a file."""
    table = live_table(rows, "by op" if moment else "by op; the bytes add up to the peak")
    whole: dict[str, Value] = {"op": "All of it", "size": peak_bytes, "share": "100.0%"}
    whole["count"] = sum(row.count for row in rows)
    return table, [whole.get(column.label, "") for column in table.columns]


def _scopes(rows: Sequence[LiveRow], total: int) -> Iterator[tuple[str, _Scope]]:
    """Scopes with a part of the peak worth a row, each before its inner ones."""
    root = _Scope()
    for row in rows:
        here = root
        for name in row.what[0].split("/", _DEEPEST)[:-1]:
            here = here.inner.setdefault(name, _Scope())
            here.bytes += row.bytes
            here.count += row.count
    result = 0
    stack = [("", root)]
    while stack and result < _SCOPES:
        path, here = stack.pop()
        if path and not _is_only_a_shell(here):
            result += 1
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
