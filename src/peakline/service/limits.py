"""What a process has few of, and what of it connections may take: descriptors."""

from __future__ import annotations

from contextlib import suppress

from peakline.service.settings import Settings

_USEFUL = 65_536
"""More descriptors than that would only make every search of them longer."""
_FILES = 512
"""Descriptors for profiles, libraries and captures."""
_PORTS = 2
_RESERVE = 16
"""Descriptors that answers need for the files they are read from."""


def raise_descriptor_limit() -> None:
    """Allow this process as many descriptors as the system lets it have."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _USEFUL if hard == resource.RLIM_INFINITY else min(hard, _USEFUL)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def is_scarce(descriptor: int) -> bool:
    """Whether few descriptors are left, as the newest one's number says: it is the lowest free."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return soft != resource.RLIM_INFINITY and descriptor >= soft - _RESERVE
    return False


def connection_limits(settings: Settings) -> tuple[int, int]:
    """How many connections each port takes at most: in all, and of one peer.

    One peer never has more than three quarters of them, whatever it may have.
    """
    most = min(settings.max_connections, _room())
    return most, max(1, min(settings.max_connections_per_peer, most * 3 // 4))


def _room() -> int:
    """The descriptors that there are for the connections of each port."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            return max(1, (soft - min(_FILES, soft // 2)) // _PORTS)
    return _USEFUL
