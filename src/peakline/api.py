"""The Python face: `open` a path, ask the `Profile`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from peakline import profile as _profile

if TYPE_CHECKING:
    from peakline.tools import ToolResult

__all__ = ["Profile", "open"]


class Profile(_profile.Profile):
    """A profile that can also run tools."""

    def tool(
        self,
        name: str,
        /,
        *,
        format: str | None = None,  # noqa: A002 (the word of the command line)
        **parameters: object,
    ) -> ToolResult:
        """Run the named tool; ``format`` defaults to the tool's first.

        Raises NotFoundError for an unknown tool, UsageError for a bad parameter or format.
        """
        from peakline.tools import run_tool

        return run_tool(self, name, parameters, format)


def open(  # noqa: A001 (used as peakline.open, like gzip.open)
    path: str | os.PathLike[str],
    *,
    host: str | None = None,
    session: str | None = None,
    strict: bool = False,
    max_unpacked_bytes: int | None = None,
) -> Profile:
    """Open one host's profile: a file, a session directory or a log directory.

    ``session`` (default: the newest) and ``host`` choose where ``path`` holds more than one.
    With ``strict``, anything lost or guessed while reading raises StrictError. A gzip file may
    expand to ``max_unpacked_bytes`` (default: 200 times its size, at least 1 GiB). Raises
    NotFoundError when nothing is there, InputError when it cannot be read.
    """
    from peakline.analysis.derived import DERIVED
    from peakline.repository import resolve
    from peakline.sources import open_reader

    file = resolve(os.fspath(path), session=session, host=host)
    reader = open_reader(file, max_unpacked_bytes=max_unpacked_bytes)
    return Profile(reader, strict=strict, derived=DERIVED)
