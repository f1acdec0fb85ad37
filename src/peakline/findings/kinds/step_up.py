"""Memory that rose once, after training began, and stayed."""

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.growth import COLUMNS, evidence_of, named, rows_of, titles, total
from peakline.findings.kind import Kind
from peakline.memory.growth.grown import ROWS
from peakline.text import size_text

KIND = Kind(
    "step_up",
    __doc__,
    about="memory",
    phrase="memory rose once and stayed",
    severity="info",
    section="growth",
    columns=COLUMNS,
    saves="kept_bytes",
)


def find(context: MemoryContext) -> Findings:
    """Of each allocator with steps, what rose at about the same time."""
    for one in context.allocators:
        growth, result = one.growth, one.grown.step_up
        if growth is None or not result:
            continue
        yield KIND.finding(
            f"{named(growth)}: memory rose by {size_text(total(result))} in "
            f"{growth.marks.title(one.grown.rose)} and stayed: {titles(result)}",
            {
                **evidence_of(growth, result[0]),
                "kept_bytes": total(result),
                "peak_bytes": growth.peak_bytes,
            },
            "What is made late (an optimizer's slots, a second model, a cache) is missing in the "
            "peak of the first steps: make it at the start, so that memory runs out there or not "
            "at all.",
            rows_of(growth, result[:ROWS]),
        )
