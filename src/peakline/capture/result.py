"""What came of a capture, and of every host in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

State = Literal["stored", "saved_by_host", "empty", "failed"]

Progress = Callable[[str, str, str], None]
"""Called with a host, its state and a detail, from the thread that called `capture`. States are
``waiting`` (for another capture of this host by this process), ``connecting``, ``recording``,
``receiving``, ``retrying``, and at last that of the outcome."""


@dataclass(frozen=True)
class HostOutcome:
    """What came of one host.

    ``state``: ``stored`` by us; ``saved_by_host``, in the session's directory on a disk shared
    with it; ``empty``, nothing was recorded and nothing is stored; ``failed``, and why is in
    ``error``. ``error`` is one line, and with a stored profile says what else went wrong. ``size``
    is the profile's, in bytes.
    """

    host: str
    address: str
    state: State
    size: int
    error: str
    attempts: int

    @property
    def is_saved(self) -> bool:
        """Whether the session holds this host's profile."""
        return self.state in {"stored", "saved_by_host"}


@dataclass(frozen=True)
class CaptureResult:
    """What came of a session; outcomes in the order of the request's targets."""

    session_id: str
    outcomes: tuple[HostOutcome, ...]
    empty_trace: bool
    """Every host's trace was empty: there is no session."""
    notes: tuple[str, ...] = ()
    """What was requested and not done, a line each."""
