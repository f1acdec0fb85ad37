"""The summary of a check in Markdown, fit for a pull request or a job's page.

Names come from files that anyone may have written: they are shown as code, where neither Markdown
nor a mention of a person is obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from peakline.check.verdict import Check
from peakline.compare.notes import signed_size
from peakline.compare.state import MemoryState
from peakline.text import size_text

_ROWS = 8
_UNNAMED = "(unnamed allocator)"
_SIGNS = {"kept": "✅", "broken": "❌", "not compared": "⚪"}
_LONGEST = 200


def summary_markdown(
    subject: str, checks: Sequence[Check], state: MemoryState, *, baseline: str | None = None
) -> str:
    """The verdict, the table of checks, what broke them, and what is largest at the peaks.

    ``subject`` names the profile, ``baseline`` the baseline where there is one. The text ends with
    a line break and takes a few kilobytes, whatever the profile's size.
    """
    broken = [check for check in checks if not check.passed]
    lines = [f"### {_verdict(checks, broken)}", ""]
    against = "" if baseline is None else f", against the baseline {code(baseline)}"
    lines += [f"Profile {code(subject)}{against}.", ""]
    lines += markdown_table(
        ("", "Limit", "Allocator", "Measured", "Allowed"),
        (
            (
                f"{_SIGNS[check.verdict]} {check.verdict}",
                check.name,
                code(check.allocator or _UNNAMED),
                check.measured_text,
                check.limit_text,
            )
            for check in checks
        ),
    )
    told = [check for check in checks if check.verdict != "kept"]
    lines += [""] if told else []
    lines += [
        f"- {code(check.allocator or _UNNAMED)}, {check.name}: {code(check.reason)}"
        for check in told
    ]
    for check in broken:
        lines += _behind(check)
    shown = {check.allocator for check in broken if check.name == "peak"}
    lines += _largest(state, shown)
    return "\n".join(lines) + "\n"


def _verdict(checks: Sequence[Check], broken: Sequence[Check]) -> str:
    if broken:
        return f"❌ Memory: {len(broken)} of {_limits(len(checks))} broken"
    return f"✅ Memory: {_limits(len(checks))} kept"


def _limits(count: int) -> str:
    return "1 limit" if count == 1 else f"{count} limits"


def _behind(check: Check) -> list[str]:
    """What is behind a broken limit: its rows."""
    if not check.rows:
        return []
    titles = {
        "peak": "Largest at the peak",
        "growth per step": "What every step leaves",
        "peak against the baseline": "What grew at the peak since the baseline",
        "growth per step against the baseline": "What every step leaves more of",
    }
    allocator = code(check.allocator or _UNNAMED)
    head = f"{titles.get(check.name, check.name)}, {allocator}"
    sizes = [name for name in check.rows[0] if name.endswith(("bytes", "bytes_per_step"))]
    sizes.sort(key=lambda name: not name.startswith("delta"))
    columns = [_SIZES.get(name, name) for name in sizes]
    has_what = "what" in check.rows[0]
    lines = ["", f"**{head}**", ""]
    return lines + markdown_table(
        (*columns, "Buffers", *(("What happened",) if has_what else ())),
        (
            (
                *(_size(name, row[name]) for name in sizes),
                code(_title(row)),
                *((code(str(row["what"])) if row["what"] else "",) if has_what else ()),
            )
            for row in check.rows[:_ROWS]
        ),
        right=len(columns),
    )


_SIZES = {
    "bytes": "Bytes",
    "bytes_per_step": "Per step",
    "before_bytes": "Baseline",
    "after_bytes": "Now",
    "delta_bytes": "Change",
    "before_bytes_per_step": "Baseline, per step",
    "after_bytes_per_step": "Now, per step",
}


def _size(name: str, value: object) -> str:
    size = value if isinstance(value, int | float) else 0
    return signed_size(size) if name.startswith("delta") else size_text(size)


def _title(row: Mapping[str, object]) -> str:
    parts = [str(row["op"] or "(no op)"), str(row["data_type"]), str(row["shape"])]
    return " ".join(part for part in parts if part)


def _largest(state: MemoryState, shown: set[str]) -> list[str]:
    """What is largest at the peaks that no broken limit has shown, folded away."""
    lines: list[str] = []
    for one in state.allocators:
        if one.allocator in shown or not one.groups:
            continue
        head = f"Largest at the peak of {size_text(one.peak_bytes)}, {html(one.name)}"
        lines += ["", "<details>", f"<summary>{head}</summary>", ""]
        lines += markdown_table(
            ("Bytes", "Share", "Buffers"),
            (
                (
                    size_text(group.bytes),
                    f"{group.bytes / one.peak_bytes:.1%}" if one.peak_bytes else "",
                    code(group.kind.title),
                )
                for group in one.groups[:_ROWS]
            ),
            right=2,
        )
        lines += ["", "</details>"]
    return lines


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: int = 0
) -> list[str]:
    """A table whose first ``right`` columns are aligned right."""
    marks = ["---:" if place < right else "---" for place in range(len(columns))]
    lines = [columns, marks, *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def code(text: str) -> str:
    """``text`` as code within a line or a cell of a table, cut at 200 characters.

    What a code span cannot hold there (pipes, backticks) is written in HTML.
    """
    line = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST - 1]}…"
    if not line.strip() or "`" in line or "|" in line:
        return f"<code>{html(line)}</code>"
    return f"`{line}`"


def html(text: str) -> str:
    """``text`` where both HTML and Markdown are read.

    All but letters, digits and blanks are character references, which neither obeys.
    """
    return "".join(
        character if character.isalnum() or character in " /-" else f"&#{ord(character)};"
        for character in text
        if character.isprintable()
    )
