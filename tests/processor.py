"""Processor seconds of this process and of all that it started: what a test costs on any machine.

A server or a browser that several tests share is counted while it runs, in the test that makes it
work; where there is no ``/proc``, when it ends.
"""

import os
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PROC = Path("/proc")


def spent() -> float:
    """Seconds until now: of this process, of its children that ended, and of those that run."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system + _of_running()


def _of_running() -> float:
    """Seconds of the processes below this one, and of what ended below them."""
    seconds = 0.0
    waiting = _children(os.getpid())
    while waiting:
        process = waiting.pop()
        try:
            stat = (_PROC / process / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has ended in the meantime
        # After the name, which may hold anything: user, system, and those of waited children.
        seconds += sum(map(int, stat.rpartition(")")[2].split()[11:15])) / _TICKS
        waiting += _children(process)
    return seconds


def _children(process: int | str) -> list[str]:
    """The processes that any thread of ``process`` started and that have not been waited for."""
    try:
        threads = os.listdir(_PROC / str(process) / "task")  # noqa: PTH208 (names are enough)
        return [
            child
            for thread in threads
            for child in (_PROC / str(process) / "task" / thread / "children").read_text().split()
        ]
    except OSError:
        return []
