"""What is said of the stages of input pipelines."""

from __future__ import annotations

from collections.abc import Sequence

from peakline.render.document.model import Row, Table, columns_of
from peakline.timing.input_pipeline import Stage

_COLUMNS = columns_of(
    program_waited="ps", self_time="ps", calls="count", longest="ps", stage="name", remark="remark"
)


def stages_table(stages: Sequence[Stage], most: int) -> Table:
    """The stages from the consumer down, and why one of them holds the program up."""
    rows: list[Row] = [
        (
            one.blocking_ps,
            one.self_ps,
            int(one.lengths.size),
            int(one.lengths[-1]),
            one.name,
            one.why if one.is_bottleneck else "",
        )
        for one in stages[:most]
    ]
    rest = (len(stages) - most,) if len(stages) > most else ()
    title = "stages of the input pipeline, from the consumer down"
    return Table(title, _COLUMNS, rows, rest).trimmed()
