"""What was live at a moment: row by row, and by what it is for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from peakline.document.model import Column, Row, Table, columns_of
from peakline.memory.over_time.ranges import Amount, Between
from peakline.memory.peak.explained import AllocatorPeak, PeakBuffer
from peakline.memory.signatures import normal_shape
from peakline.text import counted, shares_text, size_text, time_text
from peakline.trace.steps import step_text

_ROWS = 20
_NAMED, _NAMELESS = 3, 2
"""Buffers of one kind are one row when they come from so many steps with a name, or without."""
_MODULES = 3
"""Where there are more rows than a screen has, those of so many modules of one class are one."""
_INSTANCE = re.compile(r"(.+)_\d+")
_NODE = re.compile(r"torch::autograd::generated::(\w+)::apply\b")
"""How C++ calls a node of a backward pass: ``AddmmBackward0`` says it all."""
NOT_KNOWN = "not known"


def between_sentence(between: Between) -> str:
    """What was allocated from one moment, A, to another, B, and what became of it."""

    def text(amount: Amount) -> str:
        return f"{size_text(amount.bytes)} in {counted(amount.buffers, 'buffer')}"

    live, end = between.amount(between.at_b), between.amount(between.at_end)
    left = "nothing of it still live at B"
    if live.buffers:
        at_end = " and" if end.buffers == live.buffers else f" {size_text(end.bytes)}"
        left = f"{text(live)} of it still live at B,{at_end} at the end"
    words = (
        f"In {time_text(between.end_ps - between.start_ps)}: allocated {text(between.amount())}, "
        f"{left}; {text(between.amount(~between.at_b))} of it freed. Of what was allocated before "
        f"A, {text(between.freed_older)} freed."
    )
    if between.used_a is not None and between.used_b is not None:
        words += f" In use: {size_text(between.used_a)} at A, {size_text(between.used_b)} at B."
    return words


@dataclass(frozen=True)
class LiveRow:
    """One line of what was live: ``what`` is op, region, type and shape, ``described`` category,
    module, function and shape of the op's input.
    """

    bytes: int
    count: int
    what: tuple[str, str, str, str]
    step: str
    described: tuple[str, str, str, str] = ("", "", "", "")


def live_rows(buffers: Iterable[PeakBuffer], labels: Mapping[int, str]) -> list[LiveRow]:
    """The rows; those of many steps, or of nameless ones (an eager program's calls), in one."""
    rows: list[LiveRow] = []
    groups: dict[tuple[tuple[str, ...], tuple[str, ...], bool], list[LiveRow]] = {}
    for buffer in buffers:
        shape = normal_shape(buffer.shape)
        what = (_op(buffer.op), buffer.region_type, buffer.data_type, shape)
        step = buffer.start_step
        described = _described(buffer)
        row = LiveRow(buffer.bytes, buffer.count, what, step_text(step, labels), described)
        if step is None:
            rows.append(row)
        else:
            is_named = labels.get(step, "") not in {"", str(step)}
            groups.setdefault((what, described, is_named), []).append(row)
    for (_, _, is_named), group in groups.items():
        if len(group) < (_NAMED if is_named else _NAMELESS):
            rows += group
            continue
        rows.append(replace(_together(group), step=f"{len(group)} steps"))
    if len(rows) > _ROWS:
        rows = _by_class(rows)
    return sorted(rows, key=lambda row: -row.bytes)


def _op(op: str) -> str:
    result = _NODE.match(op)
    return result[1] if result else op or "(no op)"


def _described(buffer: PeakBuffer) -> tuple[str, str, str, str]:
    function = buffer.function
    if function.replace(" (", " ").removesuffix(")") == buffer.op:
        function = ""  # a snapshot has the function for an op
    return buffer.category, buffer.module, function, buffer.input_shape


def _by_class(rows: list[LiveRow]) -> list[LiveRow]:
    """With the rows of modules of one class that are otherwise alike in one, ``12 x Linear``."""
    groups: dict[tuple[object, ...], list[LiveRow]] = {}
    for row in rows:
        category, module, *others = row.described
        result = _INSTANCE.fullmatch(module)
        # A row without a number is alike to no other.
        key = (result[1], row.what, row.step, category, *others) if result else (row,)
        groups.setdefault(key, []).append(row)
    made: list[LiveRow] = []
    for (name, *_), group in groups.items():
        modules = {row.described[1] for row in group}
        if len(modules) < _MODULES:
            made += group
            continue
        category, _, *others = group[0].described
        described = (category, f"{len(modules)} x {name}", others[0], others[1])
        made.append(replace(_together(group), described=described))
    return made


def _together(group: Sequence[LiveRow]) -> LiveRow:
    size, count = sum(row.bytes for row in group), sum(row.count for row in group)
    return replace(group[0], bytes=size, count=count)


def live_table(rows: Sequence[LiveRow], title: str, most: int = _ROWS) -> Table:
    """What was live, the first rows; their shares add up with that of the others, and are the same
    however many are shown.

    A region that all of them have is in the title.
    """
    most = min(most, _ROWS)
    regions = {row.what[1] for row in rows}
    is_one = len(rows) > 1 and len(regions) == 1 and regions != {""}
    if is_one:
        title += f" (region {regions.pop()})"
    hidden = rows[most:]
    rest = sum(row.bytes for row in hidden)
    beyond = sum(row.bytes for row in rows[_ROWS:])
    shares = shares_text([*(row.bytes for row in rows[:_ROWS]), beyond])
    other = f"{sum(float(share.rstrip('%')) for share in shares[most:]):.1f}%"
    columns = columns_of(
        op="name",
        size="bytes",
        share="share",
        count="count",
        category="form",
        module="form",
        line="form",
        input_shape="form",
        region="form",
        type="form",
        shape="form",
        step="",
    )
    cells = [
        [
            *(op, row.bytes, share, row.count or "", *row.described),
            *("" if is_one else region, *form, row.step),
        ]
        for row, share in zip(rows[:most], shares, strict=False)
        for op, region, *form in [row.what]
    ]
    left: Row = ()
    if hidden:
        many = f"{len(hidden):,} more rows"
        left = (many, rest, other, sum(row.count for row in hidden), *[""] * 8)
    return Table(title, columns, cells, left).without_empty()


def narrower(table: Table) -> list[Table]:
    """The table of `live_table` as it is, then with less and less beside the name, for screens on
    which it has no room. One without module, line and category is as it is.
    """
    places = {column.label: place for place, column in enumerate(table.columns)}
    if not places.keys() & {"category", "module", "line"}:
        return [table]
    result = [table]
    without: set[str] = set()
    for label in ("input shape", "step", "type", "shape"):
        if label in places:
            without.add(label)
            result.append(_without(table, without))
    if {"module", "line"} <= places.keys():
        table = _with_where(table, places["module"], places["line"])
        result.append(_without(table, without))
    return [*result, _without(table, {*without, "count"})]


def _without(table: Table, labels: set[str]) -> Table:
    places = [n for n, column in enumerate(table.columns) if column.label not in labels]
    return table.only(places)


def _with_where(table: Table, module: int, line: int) -> Table:
    """With module and line in one column: the line where no module is known."""
    columns = list(table.columns)
    if not all(row[module] or not row[line] for row in table.rows):
        columns[module] = Column("module or line", "form")
    rows = [
        [row[module] or row[line] if n == module else cell for n, cell in enumerate(row)]
        for row in table.rows
    ]
    wide = replace(table, columns=columns, rows=rows)
    return wide.only([n for n in range(len(columns)) if n != line])


def category_table(peak: AllocatorPeak) -> Table:
    """How much of the peak is for what; without rows where nothing says it."""
    result = peak.categories
    shares = shares_text(list(result.values()))
    rows = [
        (size, share, category or NOT_KNOWN)
        for (category, size), share in zip(result.items(), shares, strict=True)
    ]
    return Table("by category", columns_of("size", "share", category="form"), rows)
