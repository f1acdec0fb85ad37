"""The parameter ``host`` of tools that answer for the profile of one host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.errors import NotFoundError

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["check_host"]


def check_host(profile: Profile, host: str | None) -> None:
    """Raise NotFoundError, which names the profile's host, for a ``host`` that is another."""
    if host and host != profile.host:
        known = profile.host or "one without a name"
        raise NotFoundError(f"no host {host!r} in {profile.path}; there is: {known}")
