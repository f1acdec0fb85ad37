"""Processor seconds of this process and of all that it started: what a test costs on any machine.

A server or a browser that several tests share is counted while it runs, in the test that makes it
work; where there is no ``/proc``, when it ends.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PROC = Path("/proc")


def spent() -> float:
    """Seconds until now: of this process, of its children that ended, and of those that run."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system + _of_running()


_STARTED: dict[str, str] = {}
"""When each process began that was seen below this one and has not gone since, by its number."""


def _of_running() -> float:
    """Seconds of the processes below this one, and of what ended below them."""
    seconds, seen = 0.0, set()
    # The system lists children thread by thread: where one ends meanwhile its children may be
    # missed, and all that a server took until then would count for the next test.
    waiting = [*_children(os.getpid()), *_STARTED]
    while waiting:
        process = waiting.pop()
        if process in seen:
            continue
        seen.add(process)
        try:
            stat = (_PROC / process / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            _STARTED.pop(process, None)
            continue  # it has ended in the meantime
        # After the name, which may hold anything: user, system, and those of waited children.
        fields = stat.rpartition(")")[2].split()
        if _STARTED.setdefault(process, fields[19]) != fields[19]:
            del _STARTED[process]
            continue  # another one, with its number
        seconds += sum(map(int, fields[11:15])) / _TICKS
        waiting += _children(process)
    return seconds


def _children(process: int | str) -> list[str]:
    """The processes that any thread of ``process`` started and that have not been waited for."""
    children: list[str] = []
    try:
        threads = os.listdir(_PROC / str(process) / "task")  # noqa: PTH208 (names are enough)
    except OSError:
        return children
    for thread in threads:
        with suppress(OSError):
            path = _PROC / str(process) / "task" / thread / "children"
            children += path.read_text(encoding="ascii").split()
    return children
