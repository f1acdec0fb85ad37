"""What a report says of a job of many ranks: all of it in sections, from the job's answer alone."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from peakline.arrays import Float64Array
from peakline.document import limits
from peakline.document.job import collective_classes, headline, job_document, job_lines, ranks_table
from peakline.document.job_members import names_text
from peakline.document.job_memory import (
    categories_table,
    held_table,
    memory_facts,
    memory_headline,
    peaks_table,
)
from peakline.document.job_tables import job_ops_table, job_steps_table
from peakline.document.model import Column, Fact, Table, capital, columns_of
from peakline.findings.finding import SEVERITIES
from peakline.jobs.answer import JobAnswer
from peakline.render.html.context import Drawings
from peakline.render.html.findings import badge
from peakline.render.html.html import Child, Markup, clip, code, tag
from peakline.render.html.svg.paint import box, fitted, label_at, tipped
from peakline.render.html.tables import Tables
from peakline.text import counted, time_text

Section = tuple[str, str, Markup]
"""Its id, its title, and the section."""


def sections(answer: JobAnswer, path: str, command: str | None) -> list[Section]:
    """All sections of the report of a job, in order."""
    tables, drawings = Tables(), Drawings()
    parts: list[tuple[str, str, Sequence[Child]]] = [
        ("summary", "Summary", _summary(answer, tables)),
        ("findings", "Findings", _findings(answer, tables)),
        ("ranks", "Ranks", _ranks(answer, tables, drawings)),
        ("steps", "Steps", _steps(answer, tables)),
        ("collectives", "Collectives", _collectives(answer, tables)),
        ("ops", "Ops", _ops(answer, tables)),
        ("memory", "Memory", _memory(answer, tables, drawings)),
        ("warnings", "Warnings", _warnings(answer, tables)),
        ("method", "How these numbers were made", _method(answer, tables, path, command)),
    ]
    return [
        (name, title, _section(name, title, shown)) for name, title, shown in parts if any(shown)
    ]


def _section(name: str, title: str, shown: Sequence[Child]) -> Markup:
    return tag("section", tag("h2", title, id=name), *shown, aria_labelledby=name)


def _summary(answer: JobAnswer, tables: Tables) -> list[Child]:
    facts, about = [], ""
    for label, what, text in job_lines(answer):
        about = label or about
        facts.append(Fact(f"{about}: {what}" if what else about, clip(text, 600)))
    lead = tag("p", capital(headline(answer)), class_="verdict")
    return [lead, tables.facts("the job in short", facts)]


def _findings(answer: JobAnswer, tables: Tables) -> list[Child]:
    every: list[Mapping[str, Any]] = job_document(answer)["findings"]
    shown: list[Child] = [_finding(one, answer, tables) for one in every[: limits.ROWS.report]]
    if more := len(every) - len(shown):
        shown.append(tag("p", f"And {counted(more, 'more finding')}: peakline summary --json."))
    return shown


def _finding(one: Mapping[str, Any], answer: JobAnswer, tables: Tables) -> Markup:
    severity = str(one["severity"]) if one["severity"] in SEVERITIES else "info"
    shown: list[Child] = [
        tag("h3", badge(severity), " ", capital(clip(str(one["title"]), 600))),
        tag("p", tag("strong", "What to do. "), str(one["suggestion"]), class_="advice"),
    ]
    who = one.get("ranks")
    if who:
        titles = set(who)
        members = [each for each in answer.job.firsts if each.title in titles]
        text = f"all {len(members)}" if len(members) == len(answer.job.firsts) else ""
        shown.append(tag("p", "Of ", text or names_text(members), ".", class_="of"))
    elif one["kind"] == "straggler" and one["rows"]:
        shown.append(tables.write(_differences(one["rows"])))
    return tag("article", *shown, class_=f"finding {severity}")


def _differences(rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = (
        Column("op", "name"), Column("self time", "ps"), Column("its peers'", "ps"),
        Column("runs", "figure"), Column("its peers'", "figure"),
        Column("largest shape", "form"), Column("its peers'", "form"),
    )  # fmt: skip
    cells = [
        (
            row["name"], round(row["own_ps"]), round(row["peer_ps"]), f"{row['own_count']:.3g}",
            f"{row['peer_count']:.3g}", row["own_shape"], row["peer_shape"],
        )
        for row in {row["name"]: row for row in reversed(rows)}.values()
    ][::-1]  # fmt: skip
    return Table("what it does in a step beside its peers", columns, cells).without_empty()


def _ranks(answer: JobAnswer, tables: Tables, drawings: Drawings) -> list[Child]:
    table = ranks_table(answer, most=limits.RANKS.report)
    written = None if table is None else tables.write(_cut(table))
    title = "What the mean step of each rank goes to"
    return [drawings.figure("rank_times", answer, title, written), _heat(answer)]


def _cut(table: Table) -> Table:
    """The table without its last line, which a page says in its title."""
    more = f", {table.rest[0]}" if table.rest else ""
    return Table(f"{table.title}{more}", table.columns, table.rows)


def _steps(answer: JobAnswer, tables: Tables) -> list[Child]:
    return [tables.write(_cut(job_steps_table(answer)))] if answer.job.steps else []


def _collectives(answer: JobAnswer, tables: Tables) -> list[Child]:
    columns = columns_of(
        kind="", size="bytes", ranks="count", count="count", wait="ps", transfer="ps",
        bus_bandwidth="figure",
    )  # fmt: skip
    classes = collective_classes(answer)
    rows = [
        (
            one["kind"], one["size_bytes"] if one["size_bytes"] >= 0 else "", one["members"],
            one["count"], one["wait_ps"], one["transfer_ps"],
            "" if one["bus_bytes_per_second"] is None
            else f"{one['bus_bytes_per_second'] / 1e9:.3g} GB/s",
        )
        for one in classes[: limits.ROWS.report]
    ]  # fmt: skip
    more = len(classes) - len(rows)
    title = "collectives by kind, size and ranks: the median wait for the last rank and transfer"
    title += f", {more} more" if more else ""
    return [tables.write(Table(title, columns, rows).without_empty())] if rows else []


def _ops(answer: JobAnswer, tables: Tables) -> list[Child]:
    written = [_cut(job_ops_table(answer, side, limits.OPS.report)) for side in ("op", "kernel")]
    return [tables.write(one) for one in written if one.rows]


def _memory(answer: JobAnswer, tables: Tables, drawings: Drawings) -> list[Child]:
    memory = answer.memory
    facts = [Fact(what or label, clip(text, 600)) for label, what, text in memory_facts(answer)]
    if not memory.members:
        return [
            tag("p", f"{capital(memory_headline(answer))}."),
            tables.facts("the memory of all ranks", facts),
        ]
    peaks = peaks_table(memory, most=limits.RANKS.report)
    written = None if peaks is None else tables.write(_cut(peaks))
    more = [one for one in (held_table(memory), categories_table(memory)) if one is not None]
    return [
        tag("p", f"{capital(memory_headline(answer))}."),
        tables.facts("the memory of all ranks", facts),
        drawings.figure("rank_peaks", answer, "The peak of each rank", written),
        *(tables.write(_cut(one)) for one in more),
    ]


def _warnings(answer: JobAnswer, tables: Tables) -> list[Child]:
    rows = [(one["kind"], one["ranks"], one["detail"]) for one in job_document(answer)["warnings"]]
    columns = columns_of(kind="name", ranks="count", the_first="")
    return [tables.write(Table("lost, skipped or guessed", columns, rows))] if rows else []


def _method(answer: JobAnswer, tables: Tables, path: str, command: str | None) -> list[Child]:
    job = answer.job
    facts = [Fact("profiles", path, "name"), Fact("read", counted(len(job.profiles), "profile"))]
    facts += [Fact("left out", f"{one.host} {one.reason}") for one in job.left_out]
    if answer.paired.clocks.aligned_by == "collectives":
        facts.append(Fact("clocks", "put on one axis by what ends together"))
    if answer.paired.is_paired.any():
        facts.append(Fact("replayed unchanged, a step is off by", f"{answer.replay.error:.2%}"))
    facts.append(Fact("Peakline", f"{version('peakline')}, Python {platform.python_version()}"))
    if command:
        facts.append(Fact("command", code(command, 2000)))
    return [tables.facts("where the numbers come from", facts)]


_HIGH, _FONT, _SHADES = 13, 10, 6
_WIDTHS = {"wide": (900, 130, 16), "narrow": (420, 90, 5)}
"""Of the whole, of the ranks' names, and how many steps have theirs."""


def _heat(answer: JobAnswer) -> Markup | None:
    """The own work of every rank in every step, darker where it is more; of many ranks, or steps,
    a cell is the most of several.
    """
    work = answer.work.work_ps
    if min(work.shape, default=0) < 2 or not np.isfinite(work).any():
        return None
    values, ranks = _pooled(work, limits.HEAT_RANKS, [one.title for one in answer.job.members])
    values, steps = _pooled(values.T, limits.HEAT_STEPS, [*answer.job.steps])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    shade = np.floor((values.T - low) / max(high - low, 1) * _SHADES * 0.9999)
    tips = [_level(low, high, level) for level in range(_SHADES)]
    title = "The own work of each rank in each step"
    label = f"{title}, from {time_text(round(low))} to {time_text(round(high))}"
    pictures = [_cells(shade, ranks, steps, tips, label, size) for size in _WIDTHS]
    legend = [
        tag("li", tag("svg", _shaded(box(0, 0, 16, 12), level), viewBox="0 0 16 12"), tip)
        for level, tip in enumerate(tips)
    ]
    many = len(ranks) < len(work) or len(steps) < work.shape[1]
    more = ", a cell is the most of several ranks or steps" if many else ""
    caption = tag(
        "figcaption",
        tag("strong", title),
        tag("br"),
        f"without what it waits for in collectives; darker is longer{more}",
    )
    return tag("figure", caption, *pictures, tag("ul", *legend, class_="legend"))


def _cells(
    shade: Float64Array,
    ranks: Sequence[str],
    steps: Sequence[str],
    tips: Sequence[str],
    label: str,
    size: str,
) -> Markup:
    wide, left, most = _WIDTHS[size]
    cell, bottom, every = (wide - left) / len(steps), len(ranks) * _HIGH, -(-len(steps) // most)
    marks: list[Child] = []
    for level, tip in enumerate(tips):
        places = np.argwhere(shade == level).tolist()
        path = "".join(box(left + x * cell, y * _HIGH, cell - 0.6, _HIGH - 0.6) for y, x in places)
        marks.append(_shaded(path, level, f"{tip} of own work"))
    marks += [
        label_at(fitted(name, left - 12, _FONT), left - 6, y * _HIGH + 10, anchor="end")
        for y, name in enumerate(ranks)
    ]
    marks += [
        label_at(fitted(name, cell * every, _FONT, end=True), left + x * cell, bottom + 14)
        for x, name in enumerate(steps)
        if x % every == 0
    ]
    return tag(
        "svg", *marks, viewBox=f"0 0 {wide} {bottom + 22}", role="img", aria_label=label,
        class_=size, font_size=_FONT, fill="var(--soft)",
    )  # fmt: skip


def _shaded(path: str, level: int, tip: str = "") -> Markup:
    opacity = 0.08 + 0.92 * level / (_SHADES - 1)
    return tipped(path, tip, fill="var(--line)", fill_opacity=f"{opacity:.2f}")


def _level(low: float, high: float, level: int) -> str:
    ends = (low + (high - low) * share / _SHADES for share in (level, level + 1))
    return " to ".join(time_text(round(end)) for end in ends)


def _pooled(
    values: Float64Array, most: int, names: Sequence[str]
) -> tuple[Float64Array, list[str]]:
    """Rows put together, the most of each, so that there are at most so many; and their names."""
    every = -(-len(names) // most)
    firsts = range(0, len(names), every)
    # A column in which nobody has a step is one of NaN.
    least = np.where(np.isfinite(values), values, -np.inf)
    result = np.array([least[k : k + every].max(axis=0) for k in firsts])
    result[np.isneginf(result)] = np.nan
    last = len(names) - 1
    texts = [
        names[k] if every == 1 else f"{names[k]} to {names[min(k + every - 1, last)]}"
        for k in firsts
    ]
    return result, texts
