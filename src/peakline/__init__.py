"""Peakline: what a machine-learning job's memory is doing and where a step's time goes.

Importing this package is cheap; its names load what they need when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peakline.api import Profile, Repository, Session, open  # noqa: A004 (used as peakline.open)
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
        UnknownFormatError,
        UsageError,
    )
    from peakline.tools import ToolResult

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
    "UnknownFormatError",
    "UsageError",
    "__version__",
    "open",
]

_HOMES = {
    "Answer": "peakline.engine",
    "Profile": "peakline.api",
    "Repository": "peakline.api",
    "Session": "peakline.api",
    "ToolResult": "peakline.tools",
    "open": "peakline.api",
}


def __getattr__(name: str) -> Any:
    """Import the module that holds ``name`` on first use (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("peakline")
    elif name in __all__:
        value = getattr(import_module(_HOMES.get(name, "peakline.errors")), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
