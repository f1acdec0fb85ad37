"""Worker processes of a data loader are started anew for each pass over the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS
from peakline.timing.loader_workers import worker_starts_of

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "workers_restarted",
    __doc__,
    about="time",
    phrase="workers of a data loader are started anew for each epoch",
    severity="warning",
    least=0.05,
    much=0.10,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns("most_gain_share", iterators="Passes over the data", workers="Workers started"),
    saves="gain_share",
)


def find(context: TimeContext) -> Findings:
    """At most one, where frames of Python were recorded."""
    result = worker_starts_of(context.profile)
    if result is None:
        return
    least, most = result.least_ps / result.wall_ps, result.most_ps / result.wall_ps
    if most < KIND.least:
        return
    where = "" if result.function is None else f", in {result.function.title}"
    yield KIND.finding(
        f"a DataLoader starts its workers anew for each pass over the data ({result.workers} in "
        f"{result.iterators} passes{where}): {least:.0%} to {most:.0%} of the recorded time goes "
        "to starting and ending them, and to the first batches",
        {
            "wall_ps": result.wall_ps,
            "iterators": result.iterators,
            "workers": result.workers,
            **of_frame(result.function),
            "share": most,
            "gain_ps": result.least_ps,
            "gain_share": least,
            "most_gain_share": most,
        },
        "Let the workers live (persistent_workers=True), make the DataLoader once, or pass over "
        "the data without epochs; for few data num_workers=0 is faster.",
    )
