"""What a notebook shows of a profile: the memory answer in short, as HTML without a script."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import replace

from peakline.deadline import Deadline, within
from peakline.errors import DeadlineError, PeaklineError
from peakline.figures.drawn import DrawnAllocator
from peakline.findings.memory_answer import MemoryAnswer
from peakline.findings.step_names import labels_of
from peakline.memory.peak import AllocatorPeak
from peakline.render.document import memory as said
from peakline.render.document.live import category_table, live_rows, live_table
from peakline.render.document.model import Table, capital, text_of
from peakline.render.document.profile import profile_text
from peakline.tables import Profile
from peakline.text import allocator_text, size_text, time_text

_SECONDS = 20
"""A cell does not wait longer than this for the answer."""
_ALLOCATORS = 6
_ROWS = 8
_BUCKETS = 160
_WIDTH, _HEIGHT = 2400, 300
_CELL = "padding:1px 12px 1px 0;text-align:left;vertical-align:middle"
_RIGHT = "padding:1px 12px 1px 0;text-align:right;white-space:nowrap;vertical-align:middle"
_QUIET = "opacity:.7"


def profile_html(profile: Profile) -> str:
    """The profile as a few lines and small tables of HTML: self-contained, and all text escaped.

    What had to be guessed is counted in ``profile.warnings`` the first time only. Never raises:
    where there is no answer, it says why.
    """
    parts = [_headed(profile)]
    try:
        with within(Deadline(_SECONDS)):
            parts += _answered(profile)
    except DeadlineError:
        told = f"Its memory takes longer than {_SECONDS} seconds to look at; profile.memory() does."
        parts.append(_line(told))
    except PeaklineError as error:
        parts.append(_line(f"error: {error}"))
    except Exception as error:  # noqa: BLE001 (a cell that only shows its value must not fail)
        parts.append(_line(f"error: {type(error).__name__}: {error}"))
    body = "".join(parts)
    # Notebooks set what stands between dollar signs as mathematics.
    return f'<div class="peakline tex2jax_ignore mathjax_ignore">{body}</div>'


def _shown(text: str, longest: int = 300) -> str:
    """``text`` of a file in one line, shortened, as HTML."""
    from peakline.figures.text import one_line

    return html.escape(one_line(text, longest))


def _line(text: str, style: str = "") -> str:
    return f'<div style="margin:4px 0;{style}">{_shown(text)}</div>'


def _headed(profile: Profile) -> str:
    return (
        f"<div><strong>{_shown(profile.path)}</strong> "
        f'<span style="{_QUIET}">{_shown(profile_text(profile, moment=True))}</span></div>'
    )


def _answered(profile: Profile) -> list[str]:
    # Loading the analyses takes a moment, and may itself be what fails.
    from peakline.findings.memory_answer import NOTHING, answer_memory
    from peakline.tables.profile_facts import is_moment

    answer = answer_memory(profile)
    moment = is_moment(profile)
    parts = [] if moment else [_line(time_text(profile.duration_ps), _QUIET)]
    if answer.nothing:
        parts.append(_line(answer.nothing))
        parts += _needs(profile)
    peaks = sorted(answer.allocators, key=lambda peak: (-peak.peak_bytes, peak.allocator))
    if peaks:
        labels = labels_of(profile.columns_or_empty("steps"))
        parts.append(_allocators(profile, answer, peaks, labels, moment=moment))
        title = "held by" if moment else "live at the peak"
        if len(peaks) > 1:
            title += f" of {allocator_text(peaks[0].allocator)}"
        categories = category_table(peaks[0])
        if categories.rows:
            parts.append(_drawn(categories))
        rows = live_rows(peaks[0].peak_buffers, labels)
        parts.append(_drawn(live_table(rows, title, _ROWS).numbers_first()))
    parts.append(_findings(answer))
    warnings = [warning for warning in profile.warnings if warning.kind != NOTHING]
    told = [f"{w.detail} ({w.count:,})" if w.count > 1 else w.detail for w in warnings]
    return [*parts, _list("Warnings", [_shown(one) for one in told])]


def _needs(profile: Profile) -> list[str]:
    """What compiled programs need, where no record says what is in memory."""
    from peakline.findings.program_memory import device_needs
    from peakline.render.document.program_memory import devices_text, needs_by_program
    from peakline.render.document.programs import live_table as program_table

    groups = needs_by_program(device_needs(profile))
    parts = []
    for group in groups[:_ALLOCATORS]:
        one = group[0]
        where = devices_text([need.device for need in group])
        least = "at least " if one.is_run else ""
        text = f"{least}{size_text(one.bytes)}, which {one.program.label} needs"
        parts.append(_line(f"{where}: {text}" if where else text))
    if groups:
        program = max((group[0] for group in groups), key=lambda one: one.bytes).program
        table = replace(program_table(program, _ROWS), rest=()).without_empty()
        parts.append(_drawn(table.numbers_first()))
    return parts


def _allocators(
    profile: Profile,
    answer: MemoryAnswer,
    peaks: list[AllocatorPeak],
    labels: Mapping[int, str],
    *,
    moment: bool,
) -> str:
    from peakline.figures.drawn import drawn_allocators

    asked = (
        {}
        if moment
        else {one.peak.allocator: one for one in drawn_allocators(profile, None, answer)}
    )
    rows = []
    for peak in peaks[:_ALLOCATORS]:
        facts = said.allocator_facts(profile, peak, answer, labels, moment=moment)
        room = next((fact.text for fact in facts if fact.label == "capacity"), "")
        one = asked.get(peak.allocator)
        spark = "" if one is None else _spark(one)
        name = _shown(allocator_text(peak.allocator), 80)
        rows.append([name, _shown(facts[0].text), _shown(room), spark])
    more = len(peaks) - len(rows)
    capacity = "Capacity" if any(row[2] for row in rows) else ""
    table = _table(["Allocator", "In use" if moment else "Peak", capacity, ""], rows)
    return table + (_line(f"and {more} more allocators", _QUIET) if more else "")


def _drawn(table: Table) -> str:
    """A table of a document under its title; nothing without rows."""
    if not table.rows:
        return ""
    columns = table.columns
    rows = [
        [_shown(text_of(cell, one.unit), 120) for cell, one in zip(row, columns, strict=True)]
        for row in (*table.rows, *([table.rest] if table.rest else ()))
    ]
    right = tuple(n for n, column in enumerate(columns) if column.is_number)
    heads = [capital(column.label) for column in columns]
    return _line(capital(table.title)) + _table(heads, rows, right=right)


def _findings(answer: MemoryAnswer) -> str:
    return _list(
        "Findings",
        [
            f"<em>{_shown(finding.severity)}</em>: {_shown(finding.title)}"
            for finding in answer.findings
        ],
    )


def _list(title: str, items: list[str]) -> str:
    """``items``, which are HTML, under a title; nothing without any."""
    if not items:
        return ""
    shown = "".join(f"<li>{item}</li>" for item in items[:_ROWS])
    more = f"<li>and {len(items) - _ROWS} more</li>" if items[_ROWS:] else ""
    return (
        f'<div style="margin:6px 0"><strong>{title}</strong>'
        f'<ul style="margin:2px 0 2px 18px;padding:0">{shown}{more}</ul></div>'
    )


def _table(heads: list[str], rows: list[list[str]], *, right: tuple[int, ...] = ()) -> str:
    """A table of cells that are HTML."""

    def row(cells: list[str], kind: str) -> str:
        # Blanks between cells set them apart where their text is copied.
        return " ".join(
            f'<{kind} style="{_RIGHT if k in right else _CELL}">{cell}</{kind}>'
            for k, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return (
        '<table style="border-collapse:collapse;margin:4px 0;font-size:inherit">'
        f"<thead><tr>{row(heads, 'th')}</tr></thead><tbody>{body}</tbody></table>"
    )


def _spark(asked: DrawnAllocator) -> str:
    """The course of memory in use as a small drawing, with a dot at the peak."""
    from peakline.figures.look import ALARM, COLOURS
    from peakline.figures.over_time import read_usage

    course = read_usage(asked, _BUCKETS)
    if course is None:
        return ""
    start, end = int(course.time_ps[0]), int(course.time_ps[-1])
    top = max(int(course.used.max()), 1)

    def place(time: int, used: int) -> tuple[int, int]:
        x = (time - start) * _WIDTH // (end - start)
        return x, _HEIGHT - max(used, 0) * _HEIGHT // top

    points = [
        place(time, used)
        for time, used in zip(course.time_ps.tolist(), course.used.tolist(), strict=True)
    ]
    path = f"M{points[0][0]} {points[0][1]}" + "".join(f"H{x}V{y}" for x, y in points[1:])
    x, y = place(asked.peak.peak_time_ps, asked.peak.peak_bytes)
    return (
        f'<svg role="img" aria-label="memory in use over time" width="240" height="36" '
        f'viewBox="-40 -40 {_WIDTH + 80} {_HEIGHT + 80}" preserveAspectRatio="none">'
        f'<path d="{path}" fill="none" stroke="{COLOURS[0]}" stroke-width="1" '
        'vector-effect="non-scaling-stroke"/>'
        f'<ellipse cx="{x}" cy="{y}" rx="28" ry="28" fill="{ALARM}"/></svg>'
    )
