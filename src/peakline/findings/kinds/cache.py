"""Memory that grew for many steps and has stopped."""

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.growth import COLUMNS, evidence_of, named, rows_of, step_of, titles, total
from peakline.findings.kind import Kind, columns
from peakline.memory.growth.grown import ROWS
from peakline.text import size_text

KIND = Kind(
    "cache",
    __doc__,
    about="memory",
    phrase="memory grew as a cache filled",
    severity="info",
    section="growth",
    columns=COLUMNS | columns("until_step"),
    saves="kept_bytes",
)


def find(context: MemoryContext) -> Findings:
    """Of each allocator with steps, all caches together."""
    for one in context.allocators:
        growth, result = one.growth, one.grown.cache
        if growth is None or not result:
            continue
        worst = max(result, key=lambda group: group.pattern.bytes)
        since, until = worst.pattern.since, worst.pattern.until
        stopped = until < len(growth.marks) - 1
        yield KIND.finding(
            f"{named(growth)}: {titles([worst])} grew to {size_text(worst.series[-1])} from "
            f"{growth.marks.title(since)} to {growth.marks.title(until)}, "
            + ("and has stopped" if stopped else "and grows less and less"),
            {
                **evidence_of(growth, worst),
                "until_step": step_of(growth, until),
                "kept_bytes": total(result),
                "confidence": round(worst.pattern.confidence, 3),
                "peak_bytes": growth.peak_bytes,
            },
            "This is no leak: what it holds is part of every later peak. Bound it, or fill it "
            "before the memory for training is planned.",
            rows_of(growth, result[:ROWS]),
        )
