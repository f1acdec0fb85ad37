"""What a notebook shows of a critical path: what it was longest in."""

from __future__ import annotations

from peakline.document import limits
from peakline.document.model import Table, columns_of
from peakline.render.notebook.pieces import drawn, headed, line
from peakline.shown import headline_of
from peakline.timing.critical_path.path import StepPath


def parts(path: StepPath) -> list[str]:
    """The answer of `Profile.critical_path`."""
    whole = max(path.end_ps - path.start_ps, 1)
    columns = columns_of(time="ps", share="share", kind="form", what="name")
    rows = [(size, size / whole, kind, name) for kind, name, size in path.by_name()]
    on = f" on {path.device}" if path.device else ""
    found = [headed("Critical path", headline_of(path) + on)]
    found.append(line(f"its pieces explain {path.explained:.1%} of that", quiet=True))
    near = [
        (piece.slack_ps, piece.end_ps - piece.begin_ps, piece.name)
        for piece in path.near[: limits.PATH.notebook]
    ]
    found.append(drawn(Table("where its time goes", columns, rows), limits.PATH.notebook))
    beside = columns_of(slack="ps", time="ps", what="name")
    found.append(
        drawn(Table("beside it, with the least slack", beside, near), limits.PATH.notebook)
    )
    return found
