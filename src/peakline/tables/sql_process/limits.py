"""What a worker may take, and that it does not outlive the process that started it.

Linux has all of these limits. Elsewhere those that the system has are set: macOS has no limit of
the address space, so that what the database counts itself is the only limit of memory there.
"""

from __future__ import annotations

import ctypes
import fcntl
import math
import os
import resource
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path

from peakline.process_memory import address_space_bytes

_NO_NEW_PRIVILEGES = 38
_MOST_FILES = 512
"""Each piece of a table that is mapped is one."""
_SLACK = 256 << 20
"""What a plan, a batch of rows and the allocator take that the database does not count."""


def confine(lifeline: int) -> None:
    """For the rest of this process: it ends when the pipe ``lifeline`` does, whatever it is doing,
    is the first to go when the machine lacks memory, and can gain no rights.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)  # which ends the process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGIO,))
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | fcntl.FASYNC)
    if select.select((lifeline,), (), (), 0)[0]:
        os._exit(0)  # nothing is ever written into it: it has ended already
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = _MOST_FILES if most == resource.RLIM_INFINITY else min(_MOST_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def limit_memory(base: int | None, more: int) -> None:
    """Let the address space be ``base`` and ``more`` bytes, and some slack, at most."""
    if base is not None:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_at_most(base + more + _SLACK, most), most))


def limit_time(seconds: float | None) -> None:
    """Let the process take ``seconds`` of every core from now on; None is without a limit."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    if seconds is None:
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = math.ceil(used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (_at_most(allowed, most), most))


def _at_most(value: int, most: int) -> int:
    return value if most == resource.RLIM_INFINITY else min(value, most)


def growth(base: int | None) -> int:
    """How many bytes the address space is larger than ``base``."""
    now = address_space_bytes()
    return 0 if base is None or now is None else now - base


def most_growth(limit: int) -> int:
    """What may stay of queries with this limit: allocators hold addresses for later, and what one
    of them holds another cannot have.
    """
    return (limit + _SLACK) // 2
