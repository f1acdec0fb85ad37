"""What changed between two profiles in Markdown, fit for a pull request.

Names come from files that anyone may have written: they are shown as code, where neither Markdown
nor a mention of a person is obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from peakline.check.markdown import code, html, markdown_table
from peakline.compare.notes import signed_size, signed_time
from peakline.text import size_text, time_text

if TYPE_CHECKING:
    from peakline.compare.comparison import Comparison, ProfileState
    from peakline.compare.memory import AllocatorDiff
    from peakline.compare.state import AllocatorState
    from peakline.compare.time import TimeDiff
    from peakline.findings.finding import Finding

__all__ = ["comparison_markdown"]

_ROWS = 8


def comparison_markdown(found: Comparison) -> str:
    """The two profiles, their figures side by side, what changed behind them, and findings.

    The text ends with a line break and takes some kilobytes, whatever the profiles' size.
    """
    lines = [
        "### What changed",
        "",
        f"Before: {_profile(found.before)}. After: {_profile(found.after)}.",
        "",
    ]
    if found.is_empty:
        return "\n".join([*lines, "Nothing changed."]) + "\n"
    rows = [row for one in found.memory.allocators for row in _memory_figures(one)]
    if found.time is not None:
        rows += _time_figures(found.time)
    if rows:
        lines += markdown_table(("", "Before", "After", "Change"), rows)
    else:
        lines.append("Neither memory nor time can be compared.")
    lines += _notes(found)
    for finding in _findings(found, "new_findings"):
        lines += ["", f"**New {finding.severity}**: {code(finding.title)}"]
        lines += ["", code(finding.suggestion)]
    for finding in _findings(found, "gone_findings"):
        lines += ["", f"**Gone {finding.severity}**: {code(finding.title)}"]
    for one in found.memory.allocators:
        lines += _groups(one)
    if found.time is not None:
        lines += [*_parts(found.time), *_ops(found.time)]
    return "\n".join(lines) + "\n"


def _profile(state: ProfileState) -> str:
    facts = state.facts
    host = f" of {code(facts.host)}" if facts.host else ""
    return f"{code(facts.path)}{host}"


def _findings(found: Comparison, name: str) -> list[Finding]:
    of_time = [] if found.time is None else getattr(found.time, name)
    return [*getattr(found.memory, name), *of_time]


def _notes(found: Comparison) -> list[str]:
    told = [
        f"{side}: {state.no_memory}"
        for side, state in (("before", found.before), ("after", found.after))
        if state.no_memory
    ]
    told += [f"{one.allocator}: {note}" for one in found.memory.allocators for note in one.notes]
    told += () if found.time is None else found.time.notes
    return ["", *(f"- {code(note)}" for note in told)] if told else []


def _memory_figures(diff: AllocatorDiff) -> Iterator[tuple[str, ...]]:
    name, before, after = code(diff.allocator or "(unnamed allocator)"), diff.before, diff.after
    yield f"peak, {name}", _peak(before), _peak(after), _peak_change(diff)
    if before is not None and after is not None:
        for title, one, other in (
            ("growth per step", before.growth_per_step, after.growth_per_step),
            ("allocated per step", before.allocated_per_step, after.allocated_per_step),
        ):
            if one is not None and other is not None and (one or other):
                change = signed_size(other - one) + _share(one, other)
                yield f"{title}, {name}", size_text(one), size_text(other), change


def _peak(state: AllocatorState | None) -> str:
    if state is None:
        return "not there"
    return "not known" if state.peak_unknown else size_text(state.peak_bytes)


def _peak_change(diff: AllocatorDiff) -> str:
    before, after = diff.before, diff.after
    if before is None or after is None or before.peak_unknown or after.peak_unknown:
        return ""
    return signed_size(diff.peak_delta_bytes) + _share(before.peak_bytes, after.peak_bytes)


def _time_figures(diff: TimeDiff) -> Iterator[tuple[str, ...]]:
    one, other = diff.before.times, diff.after.times
    if one is None or other is None:
        return
    yield "steps", f"{diff.before.steps:,}", f"{diff.after.steps:,}", ""
    for title, before, after in (
        ("step time (median)", one.median_ps, other.median_ps),
        ("step time (shortest)", one.min_ps, other.min_ps),
        ("step time (95 of 100 within)", one.p95_ps, other.p95_ps),
        ("between steps (median)", diff.before.between_ps, diff.after.between_ps),
    ):
        change = signed_time(after - before) + _share(before, after)
        yield title, time_text(before), time_text(after), change


def _share(before: float, after: float) -> str:
    return f" ({after / before - 1:+.1%})" if before > 0 and before != after else ""


def _groups(diff: AllocatorDiff) -> list[str]:
    rows = (
        (
            signed_size(row.delta_bytes),
            size_text(row.before_bytes),
            size_text(row.after_bytes),
            code(row.kind.title),
            code(row.text) if row.text else "",
        )
        for row in diff.groups
    )
    title = f"What changed at the peak of {diff.allocator or '(unnamed allocator)'}"
    return _folded(title, ("Buffers", "What happened"), rows, len(diff.groups))


def _parts(diff: TimeDiff) -> list[str]:
    rows = (
        (signed_time(one.delta_ps), time_text(one.before_ps), time_text(one.after_ps), one.words)
        for one in diff.parts
    )
    return _folded("Where the mean step's time goes", ("Part",), rows, len(diff.parts))


def _ops(diff: TimeDiff) -> list[str]:
    rows = (
        (
            signed_time(one.delta_ps),
            time_text(one.before_ps),
            time_text(one.after_ps),
            one.side,
            code(one.op),
            code(one.text) if one.text else "",
        )
        for one in diff.ops
    )
    each = "per step" if diff.by_step else "in the whole profile"
    title = f"Ops whose own time changed most, {each}"
    return _folded(title, ("On", "Op", "What happened"), rows, len(diff.ops))


def _folded(
    title: str, names: Sequence[str], rows: Iterable[Sequence[str]], count: int
) -> list[str]:
    """The first of ``count`` rows behind a title, closed until clicked; nothing without any."""
    if not count:
        return []
    lines = ["", "<details>", f"<summary>{html(title)}</summary>", ""]
    lines += markdown_table(("Change", "Before", "After", *names), islice(rows, _ROWS), right=3)
    lines += ["", f"And {count - _ROWS} more."] if count > _ROWS else []
    return [*lines, "", "</details>"]
