"""The results page of the benchmark."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    words = sum(
        name
        in {
            "file",
            "tool",
            "command",
            "program",
            "question",
            "against",
            "limit",
            "kept",
            "what",
            "value",
        }
        for name in header
    )
    aligned = ["---" if index < words else "---:" for index in range(len(header))]
    return ["| " + " | ".join(line) + " |" for line in (header, aligned, *rows)]


def _comparison(rows: list[Row]) -> list[str]:
    """Every pair of programs that were asked the same of the same file."""
    lines = []
    for row in rows:
        ours = _find(rows, row.file, row.command, "Peakline")
        if row.program == "Peakline" or ours is None:
            continue
        theirs = row.summary
        lines.append(
            [
                row.file,
                row.command,
                row.program,
                f"{ours.wall_s:.2f} s",
                f"{theirs.wall_s:.2f} s",
                f"{theirs.wall_s / ours.wall_s:.1f}",
                _mb(ours.peak_bytes),
                _mb(theirs.peak_bytes),
                f"{theirs.peak_bytes / ours.peak_bytes:.1f}",
            ]
        )
    time = ["Peakline time", "its time", "times faster"]
    memory = ["Peakline memory", "its memory", "times less"]
    return _table(["file", "question", "against", *time, *memory], lines)


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


def _floors(rows: list[Row], service: list[dict[str, Any]], lifetimes: dict[str, Any]) -> list[str]:
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

    def question(file: str, peer: str, least: float) -> None:
        theirs = next((r for r in rows if r.file == file and r.program == peer), None)
        ours = _find(rows, file, theirs.command, "Peakline") if theirs else None
        if ours and theirs:
            value = theirs.summary.wall_s / ours.wall_s
            text = f"{file}: at least {least:g} times faster than {peer}"
            checks.append((text, value, "times", value >= least))

    ratio("390 MB", 10, "faster")
    ratio("390 MB", 5, "less memory")
    ratio("40 MB", 4, "faster")
    question("run_metadata_51MB.pb", "TensorFlow timeline", 10)
    question("graph_200k.pb", "TensorFlow import_graph_def", 10)
    question("memory_60MB.log", "text_format loop", 10)
    question("tf2_cnn_390MB.xplane.pb", "XProf query_events_db", 10)
    log = _find(rows, "memory_400MB.log", "records by message", "Peakline")
    if log:
        size = next(row.size for row in rows if row.file == "memory_400MB.log")
        rate = size / 1e6 / log.cpu_s
        checks.append(
            ("memory_400MB.log: at least 100 MB/s of one core", rate, "MB/s", rate >= 100)
        )
    graph = _find(rows, "graph_1M.pb", "nodes and inputs by op", "Peakline")
    if graph:
        checks.append(("graph_1M.pb: under 10 s", graph.wall_s, "s", graph.wall_s < 10))
        used = graph.peak_bytes / 2**30
        checks.append(("graph_1M.pb: under 4 GiB", used, "GiB", used < 4))
    seconds("memory_profile", 1.2, "`memory_profile` of a 1 MB file")
    seconds("memory", 1.2, "`peakline memory`")
    seconds("memory_profile, first run", 10, "the very first `memory_profile`, compiling,")
    seconds("memory, first run", 10, "the very first `peakline memory`, compiling,")
    tool = _find(rows, "390 MB", "memory_profile", "Peakline")
    memory = _find(rows, "390 MB", "memory", "Peakline")
    if tool and memory:
        value = memory.wall_s / tool.wall_s
        text = "390 MB: `peakline memory` with all findings, at most 2 times `memory_profile` alone"
        checks.append((text, value, "times", value <= 2))
    written = _find(rows, "390 MB", "report", "Peakline")
    if written:
        checks.append(
            ("390 MB: `peakline report` under 10 s", written.wall_s, "s", written.wall_s < 10)
        )
    took = statistics.median(lifetimes["seconds"])
    text = f"lifetimes of {lifetimes['activities']:,} activities under 2 s on one core"
    checks.append((text, took, "s", took < 2))
    checks += _service_floors(service)
    return _table(
        ["limit", "kept", "measured"],
        [
            [text, "yes" if kept else "**no**", f"{value:.2f} {unit}"]
            for text, value, unit, kept in checks
        ],
    )


def _service(measured: list[dict[str, Any]]) -> list[str]:
    """The table of what the servers were asked."""
    units = {"s": "{:,.3f} s", "1/s": "{:,.0f} a second", "bytes": "{:,.0f} bytes"}
    return _table(
        ["question", "program", "runs", "median", "least", "most"],
        [
            [row["question"], row["program"], str(row["runs"])]
            + [units[row["unit"]].format(row[figure]) for figure in ("median", "least", "most")]
            for row in measured
        ],
    )


_SERVICE_LIMITS = (
    ("list 1,000", "1,000 sessions of 64 hosts listed in under 1 s", 1.0),
    ("EnumSessions, 1,000 sessions of 64 hosts, warm", "EnumSessions warm under 0.1 s", 0.1),
    ("memory_profile of a new session of 390 MB", "first answer, 390 MB, under 3 s", 3.0),
    ("GetSessionToolData", "GetSessionToolData, 1 MB, warm, at least 200 a second", 200.0),
)


def _service_floors(measured: list[dict[str, Any]]) -> list[tuple[str, float, str, bool]]:
    checks = []
    for start, text, limit in _SERVICE_LIMITS:
        row = next(row for row in measured if row["question"].startswith(start))
        value, unit = row["median"], row["unit"]
        checks.append((text, value, unit, value >= limit if unit == "1/s" else value < limit))
    return checks


def write_results(
    path: Path,
    rows: list[Row],
    facts: dict[str, str],
    large: str,
    service: list[dict[str, Any]],
    lifetimes: dict[str, Any],
) -> str:
    """Write the page to ``path`` and return its text."""
    lines = [
        "# Benchmark results",
        "",
        "Written by `make bench`; do not edit. The files are a real profile of a Keras training",
        "run and its repetitions in time (`benchmarks/scale.py`), and real logs and steps repeated",
        "(`benchmarks/formats.py`). A figure is the median over fresh processes, measured from",
        "start to exit, the programs taking turns. Peakline's kernels are in its cache except in",
        "the row that says first run. Memory is the peak of resident pages, pages of mapped files",
        "included. In every comparison both programs' answers were checked to agree.",
        "",
        "## Against others",
        "",
        *_comparison(rows),
        "",
        *([large, ""] if large else []),
        "## Limits",
        "",
        *_floors(rows, service, lifetimes),
        "",
        "## The service",
        "",
        "`peakline serve` and XProf's server, asked by one client process on the same two cores",
        "(`benchmarks/service.py`).",
        "",
        *_service(service),
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
        "- the report and the exports: `peakline report FILE -o ANSWER`,",
        "  `peakline export FILE --to TARGET -o ANSWER`",
        "- lifetimes: `python benchmarks/lifetimes.py`",
        "- the service: `python benchmarks/service.py --peers PYTHON --data bench-data`",
        "- the other questions: `benchmarks/formats.py`, which holds both programs of each",
        "- XProf: `xspace_to_tool_data([FILE], 'memory_profile', {})` of",
        "  `xprof.convert.raw_to_tool_data`, its answer written to a file",
        "",
    ]
    text = "\n".join(lines)
    path.write_text(text)
    return text
