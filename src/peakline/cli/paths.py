"""From the PATH of a verb to a profile, saying which of several sessions it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from peakline.text import one_line

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.repository import Session

__all__ = ["find_file", "find_hosts", "open_profile"]


def find_hosts(path: str, session: str | None, host: str | None) -> str | Session:
    """The file that ``path`` means, or the session where it means several hosts.

    As `peakline.repository.resolve_hosts`. That the newest of several sessions was taken is one
    line on standard error.
    """
    from peakline.repository import resolve_hosts

    def tell(newest: Session, count: int) -> None:
        text = f"{path}: session {newest.name}, the newest of {count}"
        print(f"peakline: {one_line(text)}", file=sys.stderr)

    return resolve_hosts(path, session, host, newest=tell)


def find_file(
    path: str, session: str | None, host: str | None, *, choose: str = "choose one with --host"
) -> str:
    """The one file that ``path`` means; of several hosts a UsageError names them and says how to
    ``choose``.
    """
    from peakline.repository import only_file

    return only_file(find_hosts(path, session, host), choose)


def open_profile(
    path: str,
    *,
    session: str | None = None,
    host: str | None = None,
    strict: bool,
    max_unpacked: int | None,
    choose: str = "choose one with --host",
) -> Profile:
    """`peakline.open`, with what `find_file` says of the path."""
    import peakline

    file = find_file(path, session, host, choose=choose)
    return peakline.open(file, strict=strict, max_unpacked_bytes=max_unpacked)
