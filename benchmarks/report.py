"""The results page of the benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from measure import Summary

__all__ = ["Row", "write_results"]


@dataclass(frozen=True)
class Row:
    """One measured command on one file of ``size`` bytes."""

    file: str
    size: int
    command: str
    program: str
    summary: Summary


def _find(rows: list[Row], file: str, command: str, program: str) -> Summary | None:
    for row in rows:
        if (row.file, row.command, row.program) == (file, command, program):
            return row.summary
    return None


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    aligned = ["---" if index < 2 else "---:" for index in range(len(header))]
    return ["| " + " | ".join(line) + " |" for line in (header, aligned, *rows)]


def _comparison(rows: list[Row]) -> list[str]:
    lines = []
    for file in dict.fromkeys(row.file for row in rows):
        ours = _find(rows, file, "memory_profile", "Peakline")
        theirs = _find(rows, file, "memory_profile", "XProf")
        if ours and theirs:
            lines.append(
                [
                    file,
                    "memory_profile",
                    f"{ours.wall_s:.2f} s",
                    f"{theirs.wall_s:.2f} s",
                    f"{theirs.wall_s / ours.wall_s:.1f}",
                    _mb(ours.peak_bytes),
                    _mb(theirs.peak_bytes),
                    f"{theirs.peak_bytes / ours.peak_bytes:.1f}",
                ]
            )
    time = ["Peakline time", "XProf time", "times faster"]
    memory = ["Peakline memory", "XProf memory", "times less"]
    return _table(["file", "tool", *time, *memory], lines)


def _all(rows: list[Row]) -> list[str]:
    header = ["file", "command", "program", "runs", "wall", "least", "most", "CPU", "peak memory"]
    return _table(
        header,
        [
            [
                f"{row.file}, {row.size:,} bytes",
                f"`{row.command}`" if row.program == "Peakline" else row.command,
                row.program,
                str(row.summary.runs),
                f"{row.summary.wall_s:.3f} s",
                f"{row.summary.wall_least_s:.3f} s",
                f"{row.summary.wall_most_s:.3f} s",
                f"{row.summary.cpu_s:.3f} s",
                _mb(row.summary.peak_bytes),
            ]
            for row in rows
        ],
    )


def _floors(rows: list[Row]) -> list[str]:
    """The project's own limits and whether this run keeps them."""
    checks: list[tuple[str, float, str, bool]] = []

    def ratio(file: str, least: float, of: str) -> None:
        ours = _find(rows, file, "memory_profile", "Peakline")
        theirs = _find(rows, file, "memory_profile", "XProf")
        if ours and theirs:
            values = {
                "faster": theirs.wall_s / ours.wall_s,
                "less memory": theirs.peak_bytes / ours.peak_bytes,
            }
            text = f"{file}: at least {least:g} times {of}"
            checks.append((text, values[of], "times", values[of] >= least))

    def seconds(command: str, most: float, what: str) -> None:
        ours = _find(rows, "1 MB (real)", command, "Peakline")
        if ours:
            text = f"1 MB (real): {what} under {most:g} s"
            checks.append((text, ours.wall_s, "s", ours.wall_s < most))

    ratio("390 MB", 10, "faster")
    ratio("390 MB", 5, "less memory")
    ratio("40 MB", 4, "faster")
    seconds("memory_profile", 1.2, "`memory_profile` of a 1 MB file")
    seconds("memory", 1.2, "`peakline memory`")
    seconds("memory_profile, first run", 10, "the very first run, compiling,")
    return _table(
        ["limit", "kept", "measured"],
        [
            [text, "yes" if kept else "**no**", f"{value:.2f} {unit}"]
            for text, value, unit, kept in checks
        ],
    )


def write_results(path: Path, rows: list[Row], facts: dict[str, str], large: str) -> str:
    """Write the page to ``path`` and return its text."""
    lines = [
        "# Benchmark results",
        "",
        "Written by `make bench`; do not edit. The files are a real profile of a Keras training",
        "run and its repetitions in time (`benchmarks/scale.py`). A figure is the median over",
        "fresh processes, measured from start to exit, the programs taking turns. Peakline's",
        "kernels are in its cache except in the row that says first run. Memory is the peak of",
        "resident pages, pages of mapped files included. In every comparison both programs'",
        "answers were checked to agree.",
        "",
        "## Against XProf",
        "",
        *_comparison(rows),
        "",
        *([large, ""] if large else []),
        "## Limits",
        "",
        *_floors(rows),
        "",
        "## All measurements",
        "",
        *_all(rows),
        "",
        "## Machine and versions",
        "",
        *_table(["what", "value"], [[key, value] for key, value in facts.items()]),
        "",
        "## Commands",
        "",
        "- all of this: `make bench`",
        '- Peakline: `peakline.open(FILE).tool("memory_profile")` in a new Python process, and',
        "  `peakline memory FILE [--json]`",
        "- XProf: `xspace_to_tool_data([FILE], 'memory_profile', {})` of",
        "  `xprof.convert.raw_to_tool_data`, its answer written to a file",
        "",
    ]
    text = "\n".join(lines)
    path.write_text(text)
    return text
