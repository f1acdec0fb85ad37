"""Memory that accumulates over several steps and is released, again and again."""

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.growth import COLUMNS, evidence_of, named, rows_of, titles, total
from peakline.findings.kind import Kind, columns
from peakline.memory.growth.grown import worth
from peakline.text import size_text

KIND = Kind(
    "sawtooth",
    __doc__,
    about="memory",
    phrase="memory gathers over steps before it is released",
    severity="info",
    section="growth",
    columns=COLUMNS | columns(height_bytes="Highest tooth", period_steps="Steps per tooth"),
    saves="height_bytes",
)


def find(context: MemoryContext) -> Findings:
    """Of each allocator with steps, a finding for all that is released in the same steps."""
    for one in context.allocators:
        growth = one.growth
        if growth is None:
            continue
        for teeth in one.grown.sawteeth:
            unit, pattern, rows = growth.marks.unit, teeth[0].pattern, worth(teeth)
            rate = sum(group.pattern.bytes_per_step for group in teeth)
            every = f"about every {pattern.period} {unit}s"
            when = every if pattern.period else "at irregular intervals"
            verbs = "gathers {} per {} and is" if len(rows) == 1 else "gather {} per {} and are"
            yield KIND.finding(
                f"{named(growth)}: {titles(rows)} {verbs.format(size_text(rate), unit)} released "
                f"{when}: that adds up to {size_text(total(teeth))} to the peak",
                {
                    **evidence_of(growth, teeth[0]),
                    "bytes_per_step": round(rate),
                    "height_bytes": total(teeth),
                    "period_steps": pattern.period or None,
                    "confidence": round(pattern.confidence, 3),
                    "peak_bytes": growth.peak_bytes,
                },
                "Release it more often (flush the buffer, log more often, break the reference "
                "cycle that waits for Python's garbage collector): the peak falls by what is "
                "collected.",
                rows_of(growth, rows),
            )
