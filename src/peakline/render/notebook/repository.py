"""What a notebook shows of a log directory: its sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.document import limits
from peakline.document.model import more_text
from peakline.render.notebook.pieces import headed, line, shown, table
from peakline.text import counted

if TYPE_CHECKING:
    from peakline.api import Repository


def parts(repository: Repository) -> list[str]:
    """The sessions, newest first, with their hosts."""
    sessions = repository.sessions()
    rows = [
        [shown(one.name), f"{len(one.hosts):,}", shown(", ".join(one.hosts), 120)]
        for one in sessions[: limits.SESSIONS.notebook]
    ]
    found = [headed(repository.logdir, counted(len(sessions), "session"))]
    found.append(table(["Session", "Hosts", ""], rows, right=[1]) if rows else "")
    left = len(sessions) - len(rows)
    return [*found, line(more_text(left), quiet=True) if left else ""]
