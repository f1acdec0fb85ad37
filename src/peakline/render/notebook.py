"""What a notebook shows of a profile: the memory answer in short, as HTML without a script."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from peakline.deadline import Deadline, within
from peakline.errors import DeadlineError, PeaklineError

if TYPE_CHECKING:
    from peakline.figures.asked import Asked
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.memory.peak import AllocatorPeak
    from peakline.tables import Profile

__all__ = ["profile_html"]

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
    host = f", host {profile.host}" if profile.host else ""
    return (
        f"<div><strong>{_shown(profile.path)}</strong> "
        f'<span style="{_QUIET}">{_shown(profile.format + host)}</span></div>'
    )


def _answered(profile: Profile) -> list[str]:
    # Loading the analyses takes a moment, and may itself be what fails.
    from peakline.figures.asked import ask
    from peakline.figures.text import duration_text
    from peakline.findings.memory_answer import NOTHING, answer_memory
    from peakline.tables.profile_facts import is_moment

    answer = answer_memory(profile)
    asked = {one.peak.allocator: one for one in ask(profile, None, answer)}
    moment = is_moment(profile)
    parts = [] if moment else [_line(duration_text(profile.duration_ps), _QUIET)]
    if answer.nothing:
        parts.append(_line(answer.nothing))
    peaks = sorted(answer.allocators, key=lambda peak: (-peak.peak_bytes, peak.allocator))
    if peaks:
        parts.append(_allocators(peaks, asked, moment=moment))
        parts.append(_at_peak(peaks[0], moment=moment, named=len(peaks) > 1))
    parts.append(_findings(answer))
    warnings = [warning for warning in profile.warnings if warning.kind != NOTHING]
    told = [f"{w.detail} ({w.count:,})" if w.count > 1 else w.detail for w in warnings]
    return [*parts, _list("Warnings", [_shown(one) for one in told])]


def _allocators(peaks: list[AllocatorPeak], asked: dict[str, Asked], *, moment: bool) -> str:
    from peakline.figures.text import duration_text, share_text, size_text

    rows = []
    for peak in peaks[:_ALLOCATORS]:
        when = "" if moment else f"at {duration_text(peak.peak_time_ps)}"
        room = ""
        if peak.capacity_bytes:
            share = share_text(peak.peak_bytes, peak.capacity_bytes)
            room = f"{share} of {size_text(peak.capacity_bytes)}"
        one = asked.get(peak.allocator)
        cells = [_shown(peak.allocator or "(unnamed allocator)", 80), size_text(peak.peak_bytes)]
        rows.append([*cells, when, room, "" if one is None or moment else _spark(one)])
    size = "In use" if moment else "Peak"
    more = len(peaks) - len(rows)
    capacity = "Of the capacity" if any(row[3] for row in rows) else ""
    table = _table(["Allocator", size, "", capacity, ""], rows, right=(1,))
    return table + (_line(f"and {more} more allocators", _QUIET) if more else "")


def _at_peak(peak: AllocatorPeak, *, moment: bool, named: bool) -> str:
    from peakline.figures.text import form_text, size_text
    from peakline.text import shares_text

    merged: dict[tuple[str, str], tuple[int, int]] = {}
    for buffer in peak.peak_buffers:
        form = form_text(buffer.region_type, buffer.data_type, buffer.shape)
        key = (buffer.op or "(no op)", form)
        size, count = merged.get(key, (0, 0))
        merged[key] = (size + buffer.bytes, count + buffer.count)
    rows = sorted(merged.items(), key=lambda item: (-item[1][0], item[0]))
    if not rows:
        return ""
    rest = sum(size for _, (size, _) in rows[_ROWS:])
    shares = shares_text([*(size for _, (size, _) in rows[:_ROWS]), rest])
    told = [
        [
            size_text(size),
            share if peak.peak_bytes else "",
            f"{count:,}" if count else "",
            _shown(op, 120),
            _shown(form, 80),
        ]
        for ((op, form), (size, count)), share in zip(rows[:_ROWS], shares, strict=False)
    ]
    title = "Held by" if moment else "Live at the peak"
    if named:
        title += f" of {_shown(peak.allocator or '(unnamed allocator)', 80)}"
    more = f"and {len(rows) - _ROWS:,} more, {size_text(rest)}" if rows[_ROWS:] else ""
    table = _table(["Size", "Share", "Count", title, ""], told, right=(0, 1, 2))
    return table + (_line(more, _QUIET) if more else "")


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


def _table(heads: list[str], rows: list[list[str]], *, right: tuple[int, ...]) -> str:
    """A table of cells that are HTML."""

    def row(cells: list[str], kind: str) -> str:
        return "".join(
            f'<{kind} style="{_RIGHT if k in right else _CELL}">{cell}</{kind}>'
            for k, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return (
        '<table style="border-collapse:collapse;margin:4px 0;font-size:inherit">'
        f"<thead><tr>{row(heads, 'th')}</tr></thead><tbody>{body}</tbody></table>"
    )


def _spark(asked: Asked) -> str:
    """The course of memory in use as a small drawing, with a dot at the peak."""
    from peakline.figures.look import ALARM, COLOURS
    from peakline.figures.over_time import read_course

    course = read_course(asked, _BUCKETS)
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
