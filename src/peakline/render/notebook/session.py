"""What a notebook shows of a session: its hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.document import limits
from peakline.render.notebook.pieces import headed, listed, shown

if TYPE_CHECKING:
    from peakline.api import Session


def parts(session: Session) -> list[str]:
    """One of the sessions of a `Repository`."""
    hosts = [shown(one) for one in session.hosts]
    return [headed(session.name, session.path), listed("Hosts", hosts, limits.HOSTS.notebook)]
