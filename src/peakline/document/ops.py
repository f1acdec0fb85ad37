"""What is said of ops and kernels: how long they took, how often they ran."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from peakline.document.model import Column, Row, Table, columns_of
from peakline.document.profile import answer_document
from peakline.document.wording import NO_FUNCTION
from peakline.findings.recording_advice import to_place_functions, to_place_ops
from peakline.tables import Columns, Profile
from peakline.text import counted, shares_text, short_time_text
from peakline.timing.input_pipeline import Stage
from peakline.timing.ops.places import By, rows_by
from peakline.timing.ops.printed import PrintedTimes, printed_times

_SUMMED = {"device": "summed over devices and their streams", "host": "summed over threads"}
_SPREAD = (Column("runs", "count"), *columns_of(median="run_ps", p95="run_ps", max="run_ps"))
_OPS = (
    *columns_of(self_time="run_ps", share="figure", total="run_ps"),
    *_SPREAD,
    *columns_of("type", "op"),
)
_MODULES = (
    *columns_of(self_time="run_ps", share="figure", total="run_ps"),
    Column("runs", "count"),
    Column("module", "name"),
)
_FUNCTIONS = (*_MODULES[:-1], Column("function", "name"))
_TYPES = (*_MODULES[:-1], Column("type", "name"))
_SHAPES = (
    *columns_of(self_time="run_ps", share="figure", total="run_ps"),
    *_SPREAD,
    *columns_of("op", inputs="form"),
)
_PRINTED = (
    *columns_of(self_time="run_ps", share="figure", total="run_ps"),
    *(Column("runs", "count"), Column("op", "name"), Column("inputs", "form")),
)
_KERNELS = (
    *columns_of(total="run_ps", share="figure"),
    *_SPREAD,
    *columns_of(
        occupancy="figure", tensor_cores="", grid="form", block="form", op="name", kernel="name"
    ),
)
NARROW_WITHOUT = ("block", "grid", "max", "p95", "occupancy", "type")
"""Columns that a narrow screen does without, in this order, so that names have room."""
RUNS = "RUNS of an op on a device: the kernels that one run of it launched count as one, if known"


def sorted_ops(profile: Profile, table: str, column: str) -> Columns | None:
    """The table ``op_stats`` or ``kernels``, the largest ``column`` first and among equals by name;
    None without one row.
    """
    if table not in profile.tables or not profile.has_rows(table):
        return None
    result = profile.columns(table)
    # A kernel calls nothing: all its time is its own.
    by = column if column in result else "total_ps"
    names = result.names("kernel" if table == "kernels" else "op")
    rank = np.argsort(np.argsort(np.array([*names.values, ""], object), kind="stable"))
    return result.take(np.lexsort((rank[names.codes], -result.array(by))))


def ops_tables(table: Columns, most: int) -> dict[str, Table]:
    """The ops of the devices, then those of the host; ``table`` stands in order."""
    side, result = table.names("side"), {}
    for name in ("device", "host"):
        rows = np.flatnonzero(side.codes == side.code_of(name))
        if rows.size:
            result[name] = _ops_of(name, table.take(rows), most)
    return result


def _ops_of(side: str, table: Columns, most: int) -> Table:
    whole = short_time_text(int(table.array("self_ps").sum()))
    title = f"{side}: {counted(table.rows, 'op')}, {whole} of self time, {_SUMMED[side]}"
    rows: list[Row] = [
        (row["self_ps"], share, row["total_ps"], *_spread(row), row["op_type"] or "", row["op"])
        for row, share in _first(table, "self_ps", most)
    ]
    return Table(title, _OPS, rows, _rest(table, most))


def by_module_tables(rows: Sequence[dict[str, Any]], most: int) -> dict[str, Table]:
    """The modules whose ops take time on the devices, then on the host; ``rows`` stand in order."""
    return _by_side(rows, most, "module", _MODULES, _module_cells)


def by_function_tables(rows: Sequence[dict[str, Any]], most: int) -> dict[str, Table]:
    """The program's functions that take time on the devices, then on the host, in order."""
    files = {row["file"] for row in rows}
    bases = Counter(_base(file) for file in files)

    def cells(row: dict[str, Any], share: str) -> Row:
        file = row["file"] if bases[_base(row["file"])] > 1 else _base(row["file"])
        name = row["function"].replace("<locals>.", "")
        place = f"{file}:{row['line']}" if file else ""
        title = f"{name} ({place})" if name and place else name or place or NO_FUNCTION
        return (row["self_ps"], share, row["total_ps"], row["occurrences"], title)

    return _by_side(rows, most, "function", _FUNCTIONS, cells)


def by_type_tables(rows: Sequence[dict[str, Any]], most: int) -> dict[str, Table]:
    """The types of ops that take time on the devices, then on the host; ``rows`` stand in order."""
    return _by_side(rows, most, "type", _TYPES, _type_cells)


def by_shape_tables(rows: Sequence[dict[str, Any]], most: int) -> dict[str, Table]:
    """The ops by the shapes of their inputs, of the devices, then of the host, in order."""
    return _by_side(rows, most, "op and shape", _SHAPES, _shape_cells)


def _by_side(
    rows: Sequence[dict[str, Any]],
    most: int,
    what: str,
    columns: Sequence[Column],
    cells: Callable[[dict[str, Any], str], Row],
) -> dict[str, Table]:
    result = {}
    for side in ("device", "host"):
        mine = [row for row in rows if row["side"] == side]
        if not mine:
            continue
        sizes = [row["self_ps"] for row in mine]
        shares = shares_text([*sizes[:most], sum(sizes[most:])])
        made = [cells(row, share) for row, share in zip(mine[:most], shares, strict=False)]
        whole = short_time_text(sum(sizes))
        title = f"{side} by {what}: {whole} of self time, {_SUMMED[side]}"
        left = (len(mine) - most,) if len(mine) > most else ()
        result[side] = Table(title, columns, made, left)
    return result


def _base(file: str) -> str:
    parts = re.split(r"[\\/]", file)
    # Every package has an __init__.py.
    return "/".join(parts[-2:] if parts[-1].startswith("__") else parts[-1:])


def _module_cells(row: dict[str, Any], share: str) -> Row:
    module = row["module"] or "(no module)"
    return (row["self_ps"], share, row["total_ps"], row["occurrences"], module)


def _type_cells(row: dict[str, Any], share: str) -> Row:
    return (row["self_ps"], share, row["total_ps"], row["occurrences"], row["type"])


def _shape_cells(row: dict[str, Any], share: str) -> Row:
    spread = (row[name] for name in ("occurrences", "median_ps", "p95_ps", "max_ps"))
    return (row["self_ps"], share, row["total_ps"], *spread, row["op"], row["input_shape"])


def printed_tables(profile: Profile, most: int) -> dict[str, Table]:
    """What profilers printed, by what each table is of; nothing for a profile with events."""
    result: dict[str, Table] = {}
    for one in printed_times(profile):
        rows: list[Row] = [
            (
                *((row["self_ps"],) if one.has_self else ()),
                f"{one.share(row):.1%}",
                row["total_ps"],
                "" if row["occurrences"] is None else row["occurrences"],
                row["op"],
                row["input_shape"] or "",
            )
            for row in one.rows[:most]
        ]
        columns = _PRINTED if one.has_self else _PRINTED[1:]
        what = f"{one.side}, printed by {one.source}{f' for {one.part}' if one.part else ''}"
        rest = (len(one.rows) - most,) if len(one.rows) > most else ()
        table = Table(f"{what}: {printed_text(one)}", columns, rows, rest)
        result[f"{one.side} {len(result)}" if one.side in result else one.side] = (
            table if any(row[-1] for row in rows) else table.only(range(len(columns) - 1))
        )
    return result


def printed_text(one: PrintedTimes) -> str:
    """How many lines a printed table has, and how much of the time they are."""
    lines = counted(len(one.rows), "line")
    if not one.has_self:
        return f"{lines}, which include each other; {short_time_text(one.all_ps)} in all"
    shown, whole = short_time_text(one.shown_ps), short_time_text(one.all_ps)
    of = f" of {whole}" if shown != whole else ""
    return f"{lines} with {shown}{of} of self time"


def kernels_table(table: Columns, most: int) -> Table:
    """The GPU kernels; ``table`` stands in order."""
    whole = short_time_text(int(table.array("total_ps").sum()))
    rows: list[Row] = [
        (
            row["total_ps"],
            share,
            *_spread(row),
            f"{row['occupancy_percent']:.0f}%" if row["occupancy_percent"] else "",
            _tensor_cores(row["uses_tensor_cores"], row["could_use_tensor_cores"]),
            row["grid"],
            row["block"],
            row["op"] or "",
            row["kernel"],
        )
        for row, share in _first(table, "total_ps", most)
    ]
    title = f"{counted(table.rows, 'kernel')}, {whole}, {_SUMMED['device']}"
    return Table(title, _KERNELS, rows, _rest(table, most))


def _first(table: Columns, column: str, most: int) -> list[tuple[dict[str, Any], str]]:
    """The first rows, and what share of all each has; with that of the rest they add up."""
    sizes = table.array(column)
    shown = sizes[:most].tolist()
    shares = shares_text([*shown, int(sizes.sum()) - sum(shown)])
    rows = table.take(np.arange(len(shown))).to_pylist()
    return list(zip(rows, shares, strict=False))


def _spread(row: dict[str, Any]) -> Sequence[int]:
    return [row[name] for name in ("occurrences", "median_ps", "p95_ps", "max_ps")]


def _tensor_cores(uses: bool, could: bool) -> str:
    return "used" if uses else "not used" if could else ""


def _rest(table: Columns, most: int) -> Row:
    return (table.rows - most,) if table.rows > most else ()


def ops_rows(profile: Profile, by: By, column: str = "self_ps") -> list[dict[str, Any]]:
    """The time of ops by module, function, type or shapes, the largest ``column`` first."""
    return sorted(rows_by(profile, by), key=lambda row: -row[column])


def to_place(profile: Profile, by: By | None) -> tuple[str, ...]:
    """What to record to see more of where ops run, a line each."""
    if by != "function":
        return to_place_ops(profile)
    return () if rows_by(profile, by) else (to_place_functions(profile),)


def ops_document(
    profile: Profile,
    *,
    kernels: bool = False,
    column: str = "self_ps",
    top: int | None = None,
    by: By | None = None,
) -> dict[str, object]:
    """What ``peakline ops --json`` prints: the first ``top`` rows, in order of ``column``."""
    missing: dict[str, object] = {} if kernels else {"to_record": list(to_place(profile, by))}
    if by is not None:
        rows = ops_rows(profile, by, column)[:top]
        key = "ops" if by == "shape" else f"{by}s"
        return answer_document(profile, {key: rows, **missing})
    table = sorted_ops(profile, "kernels" if kernels else "op_stats", column)
    rows = [] if table is None else table.to_pylist()[:top]
    if not kernels and "printed_ops" in profile.tables:
        missing["printed"] = [
            {
                "source": one.source,
                "part": one.part or None,
                "side": one.side,
                "whole_ps": one.whole_ps,
                "ops": list(one.rows[:top]),
            }
            for one in printed_times(profile)
        ]
    return answer_document(profile, {"kernels" if kernels else "ops": rows, **missing})


_STAGES = columns_of(
    program_waited="ps", self_time="ps", calls="count", longest="ps", stage="name", remark="remark"
)


def stages_table(stages: Sequence[Stage], most: int) -> Table:
    """The stages from the consumer down, and why one of them holds the program up."""
    rows: list[Row] = [
        (
            one.blocking_ps,
            one.self_ps,
            int(one.lengths.size),
            int(one.lengths[-1]),
            one.name,
            one.why if one.is_bottleneck else "",
        )
        for one in stages[:most]
    ]
    rest = (len(stages) - most,) if len(stages) > most else ()
    title = "stages of the input pipeline, from the consumer down"
    return Table(title, _STAGES, rows, rest).trimmed()
