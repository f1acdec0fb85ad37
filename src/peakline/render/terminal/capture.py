"""What a capture gave: the session's path, and of several hosts a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.render.document.capture import hosts_table
from peakline.render.terminal.screen import Shown, Text, grid_of, show

if TYPE_CHECKING:
    from peakline.capture import CaptureResult
    from peakline.repository import Repository


def print_capture(result: CaptureResult, repository: Repository) -> None:
    """Print where the session lies, and a line per host where there are several."""
    if not any(outcome.is_saved for outcome in result.outcomes):
        return
    session = repository.session(result.session_id)
    parts: list[Shown] = [Text(session.path)]
    if len(result.outcomes) > 1:
        parts.append(grid_of(hosts_table(result, session)))
    show(parts)
