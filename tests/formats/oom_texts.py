"""What a text comes to: the findings about its failures, as a person is shown them."""

from peakline.findings.context import MemoryContext
from peakline.findings.finding import Finding
from peakline.findings.kinds import out_of_memory
from peakline.formats.oom_report.scanner import OomScanner
from peakline.formats.oom_report.tables import OomReports
from peakline.memory.oom import failed_moments
from peakline.tables.tables import check_columns

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def read(text: str) -> OomReports:
    scanner = OomScanner()
    scanner.feed(text.encode())
    return scanner.finish()


def findings_of(text: str) -> list[Finding]:
    reports = read(text)
    tables = [
        check_columns(name, reports.read(name)) for name in ("oom_reports", "blocks", "oom_parts")
    ]
    return list(out_of_memory.find(MemoryContext(failures=failed_moments(*tables))))


def parts_of(finding: Finding) -> dict[str, int]:
    """The parts by name, and by subject where one has it."""
    rows = finding.evidence.get("parts", [])
    return {
        row["part"] if not row["subject"] else f"{row['part']} {row['subject']}": row["bytes"]
        for row in rows
    }
