"""The first run on a new machine: have the other kernels compiled while the decoder's is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from peakline.wire.kernel import walk

__all__ = ["help_first_run"]

_GUARD = "PEAKLINE_PRECOMPILING"
"""Set in the helping process, which must not ask for help itself."""


def help_first_run(form: str) -> None:
    """Start `peakline.precompile` in the background if the decoder has not been compiled yet.

    ``form`` is the format of the file that is about to be read. Only a matter of speed: where it
    cannot be told, or no process can be started, nothing happens.
    """
    if _GUARD in os.environ or walk.signatures or _is_cached():
        return
    if not hasattr(os, "posix_spawn") or not hasattr(os, "sched_getaffinity"):
        return
    if len(os.sched_getaffinity(0)) < 2:
        return
    command = [sys.executable, "-m", "peakline.precompile", form]
    silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    try:
        os.posix_spawn(
            sys.executable,
            command,
            {**os.environ, _GUARD: "1"},
            file_actions=silent,
            setsid=True,
        )
    except OSError:
        return


def _is_cached() -> bool:
    """Whether Numba has kept compiled code of the decoder; True where that cannot be told."""
    try:
        cache: Any = vars(walk)["_cache"]
        return Path(cache.cache_path, cache._cache_file._index_name).exists()  # noqa: SLF001
    except (AttributeError, KeyError):
        return True
