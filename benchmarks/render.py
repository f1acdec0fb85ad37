"""The results page: all parts' last measurements, and which limits they keep."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from limits import LIMITS
from results import Record
from sections import SECTIONS, Section

from tables import NOTHING, number, table

_HEAD = (
    "Written by `benchmarks/run.py` from what every part last measured (`benchmarks/results/`); do"
    " not edit, a test compares. `make bench` measures all parts anew,"
    " `python benchmarks/run.py --peers PYTHON --only PART ...` some of them, PYTHON being one that"
    " has XProf. The parts may be of different days, commits and machines: each says of which."
)


def render(records: Mapping[str, Record]) -> str:
    """The text of the page, whole, whichever parts have been measured."""
    lines = ["# Benchmark results", "", *_filled(_HEAD), "", *_overview(records)]
    for part, section in SECTIONS.items():
        lines += ["", *_section(part, section, records.get(part))]
    return "\n".join(lines) + "\n"


def _overview(records: Mapping[str, Record]) -> list[str]:
    """One row per part: when and of what it was measured, and how its limits fare."""
    rows = []
    for part, section in SECTIONS.items():
        record = records.get(part)
        measured = record.measured if record else None
        chosen = [limit.kept(measured) for limit in LIMITS if limit.part == part]
        counts = [chosen.count(True), chosen.count(False), chosen.count(None)]
        place = section.title.lower().replace(" ", "-")
        day, of = (record.date, record.commit) if record else (NOTHING, NOTHING)
        took = number(record.seconds if record else None, "{:,.0f} s")
        rows.append([f"[{section.title}](#{place})", day, of, took, *map(str, counts)])
    header = ["took", "limits kept", "not kept", "not measured"]
    return table(["part", "measured on", "commit"], header, rows)


def _section(part: str, section: Section, record: Record | None) -> list[str]:
    lines = [f"## {section.title}", "", *_filled(section.about), ""]
    measured = None
    if record is None:
        lines.append("Not measured yet.")
    else:
        measured = record.measured
        lines += [*_filled(_provenance(record)), ""]
        lines += section.tables(measured)
    if limits := [limit.row(measured) for limit in LIMITS if limit.part == part]:
        lines += ["", *table(["limit", "kept"], ["measured"], limits)]
    return lines


def _provenance(record: Record) -> str:
    machine = ", ".join(f"{what} {result}" for what, result in record.machine.items())
    versions = ", ".join(f"{what} {result}" for what, result in record.versions.items())
    of = f"commit {record.commit}" if record.commit else "a commit that was not recorded"
    return (
        f"Measured on {record.date} at {of} by `{record.command}`. Machine: {machine}. With"
        f" {versions}."
    )


def _filled(text: str) -> list[str]:
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)
