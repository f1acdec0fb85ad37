"""Peakline: what a machine-learning job's memory is doing and where a step's time goes.

::

    import peakline

    profile = peakline.open("logs")  # a file, a session or a log directory
    profile.memory()  # the peak of every allocator, what is live at it, findings
    profile.time()  # steps, where their time goes, findings
    profile.sql("select name, count(*) n from events group by name order by n desc limit 5")
    profile.to_pandas("steps")  # a table, view or query as a data frame

    peakline.diff(before, after)  # what changed between two profiles
    peakline.Repository("logs").sessions()  # all sessions of a log directory

Importing this package is cheap; its names load what they need when first used. Every error that it
raises on purpose is a `PeaklineError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.api import Profile, Repository, Session, diff, open  # noqa: A004 (used as peakline.open)
    from peakline.engine import Answer
    from peakline.errors import (
        BusyError,
        CancelledError,
        CheckFailed,
        DamagedError,
        DeadlineError,
        ExistsError,
        ForbiddenError,
        InputError,
        NotFoundError,
        OutputError,
        PeaklineError,
        RemoteError,
        StrictError,
        UnforeseenError,
        UnknownFormatError,
        UsageError,
    )
    from peakline.tools import ToolResult
    from peakline.tools.timeline.reader import read_timeline

    __version__: str

__all__ = [
    "Answer",
    "BusyError",
    "CancelledError",
    "CheckFailed",
    "DamagedError",
    "DeadlineError",
    "ExistsError",
    "ForbiddenError",
    "InputError",
    "NotFoundError",
    "OutputError",
    "PeaklineError",
    "Profile",
    "RemoteError",
    "Repository",
    "Session",
    "StrictError",
    "ToolResult",
    "UnforeseenError",
    "UnknownFormatError",
    "UsageError",
    "__version__",
    "diff",
    "open",
    "read_timeline",
]

_HOMES = {
    "Answer": "peakline.engine",
    "Profile": "peakline.api",
    "Repository": "peakline.api",
    "Session": "peakline.api",
    "ToolResult": "peakline.tools",
    "diff": "peakline.api",
    "open": "peakline.api",
    "read_timeline": "peakline.tools.timeline.reader",
}


_find = door(__name__, dict.fromkeys(__all__, "peakline.errors") | _HOMES)


def __getattr__(name: str) -> Any:
    """Import the module that holds ``name`` on first use (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("peakline")
    return _find(name)


__dir__ = listed(__name__)
