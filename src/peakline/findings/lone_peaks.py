"""What the findings of a peak that stands alone have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import ORIGIN, SIGNATURE, Kind, about_signature, columns
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

COLUMNS = columns(
    *SIGNATURE, *ORIGIN, "scope", "buffer_bytes", "bytes", "count", "step", "peak_bytes",
    others_bytes="Most at other times",
    saved_bytes="Saves", program="Program",
)  # fmt: skip
_ROWS = 5
_EXPLAINED = 0.5
"""What is only there then must be on record: else the figures alone say so."""


def findings_of(context: MemoryContext, kind: Kind, where: str, advice: str) -> Findings:
    """Of each allocator whose peak stands alone ``where``."""
    import numpy as np

    from peakline.memory.peak.lone import ONE_STEP, lone_peak, more_often

    history = context.history
    if history is None:
        return
    for one in context.allocators:
        number = history.lifetimes.allocators.index(one.allocator)
        marks = None if one.growth is None else one.growth.marks
        found = lone_peak(
            history, number, marks, context.steps, one.peak.capacity_bytes, context.origins
        )
        at_peak = one.at_peak
        if found is None or found.where != where or at_peak is None or not at_peak.rows.size:
            continue
        made = at_peak.is_freed & (at_peak.step == at_peak.own_step)
        if where == ONE_STEP:
            # What other steps make as often lies together by chance: ops run side by side.
            made &= more_often(history, at_peak)[at_peak.codes]
        if int(at_peak.bytes[made].sum()) < _EXPLAINED * (found.peak_bytes - found.others_bytes):
            continue
        # What lives on is there at other times too.
        passing = at_peak.is_freed if at_peak.is_freed.any() else slice(None)
        codes, totals = at_peak.by_code(passing)
        order = np.argsort(-totals, kind="stable").tolist()[:_ROWS]
        first = history.signatures[int(codes[order[0]])]
        yield kind.finding(
            f"{allocator_text(one.allocator)}: memory is fullest {found.when}, with "
            f"{size_text(found.peak_bytes)}; at other times it takes "
            f"{size_text(found.others_bytes)} at most: {first.title}",
            {
                **about_signature(first),
                "buffer_bytes": first.bytes,
                "step": found.step,
                "peak_bytes": found.peak_bytes,
                "others_bytes": found.others_bytes,
                "saved_bytes": found.peak_bytes - found.others_bytes,
            },
            advice,
            tuple(
                history.signatures[int(codes[place])].as_row()
                | {
                    "bytes": int(totals[place]),
                    "count": int(np.count_nonzero(at_peak.codes == codes[place])),
                }
                for place in order
            ),
            # The first steps of a run compile, measure kernels and fill caches.
            severity="info" if found.is_first else "",
        )
