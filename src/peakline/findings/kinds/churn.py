"""One buffer is allocated and freed hundreds of times in a step."""

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.kind import ORIGIN, SIGNATURE, Kind, about_signature, columns
from peakline.text import allocator_text, size_text

KIND = Kind(
    "churn",
    __doc__,
    about="memory",
    phrase="a buffer is made over and over within a step",
    severity="info",
    section="churn",
    columns=columns(
        *SIGNATURE,
        *ORIGIN,
        "scope",
        "allocations_per_step",
        "bytes_per_step",
        "most_live",
        "peak_bytes",
    ),
)

REPEATED = 256
"""A buffer repeats when a step allocates and frees it so often, two of them at once at most, ..."""
REPEATED_SHARE = 4.0
"""... and its bytes in a step are so many times the peak."""
_ROWS = 10


def find(context: MemoryContext) -> Findings:
    """Of each allocator with steps, the signatures that repeat, in one finding."""
    for result in (one.churn for one in context.allocators):
        if not result.steps or not result.peak_bytes:
            continue
        repeated = [
            one
            for one in result.signatures.at_least(
                allocations=REPEATED * result.steps,
                size=REPEATED_SHARE * result.peak_bytes * result.steps,
            )
            if one.most_live <= 2
        ]
        if not repeated:
            continue
        rates = [
            {
                "allocations_per_step": round(one.allocations / result.steps, 1),
                "bytes_per_step": round(one.bytes / result.steps),
            }
            for one in repeated[:_ROWS]
        ]
        first = repeated[0]
        yield KIND.finding(
            f"{allocator_text(result.allocator)}: {first.signature.title} is allocated and freed "
            f"{first.allocations / result.steps:,.0f} times in a step, "
            f"{size_text(first.bytes / result.steps)} in all, against a peak of "
            f"{size_text(result.peak_bytes)}",
            {**about_signature(first.signature), **rates[0], "peak_bytes": result.peak_bytes},
            "A loop runs over single items: work on many of them at once, or compile the loop so "
            "that the buffer is used again.",
            tuple(
                one.signature.as_row() | rate | {"most_live": one.most_live}
                for one, rate in zip(repeated, rates, strict=False)
            ),
        )
