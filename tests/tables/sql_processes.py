"""Queries in processes of their own, and what the system says of these processes."""

import os
import re
import signal
import threading
from pathlib import Path

from tests.waiting import HANG_S, EndedDeadline, until

from peakline.deadline import within
from peakline.tables.sql_process.answer import Form
from peakline.tables.sql_process.pool import Question

LIMIT = 64 << 20
ENDLESS = "select count(*) from range(10000000) a, range(10000000) b where a.range * b.range = 7"
UNIONS = " union all ".join(["select 1"] * 55_000)
_JOINED = "c{} as not materialized (select a.x from c{} a, c{} b)"
_MANY = ", ".join(_JOINED.format(i, i - 1, i - 1) for i in range(1, 25))
CTES = f"with c0 as not materialized (select 1 x), {_MANY} select count(*) from c24"  # noqa: S608


def ask(sql, profile, query, form=None, *, limit=LIMIT, remote=True):
    return sql.rows(profile, Question(query, limit, form or Form("json"), remote))


def numbers(pid, file, *names):
    """Values of a file of /proc that has a line of a name and a number."""
    text = Path("/proc", str(pid), file).read_text(encoding="ascii")
    return [int(re.search(rf"(?m)^{name}:?\s+(\d+)", text)[1]) for name in names]


def ticks(pid):
    """How much of the processor a process has taken."""
    fields = Path("/proc", str(pid), "stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def is_there(pid):
    try:
        state = Path("/proc", str(pid), "stat").read_text(encoding="ascii").rpartition(")")[2][1]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


class Asking(threading.Thread):
    """A query in a thread, at work in a process when it is made."""

    def __init__(self, sql, profile, query):
        super().__init__()
        ask(sql, profile, "select 1")
        self.deadline, self.error = EndedDeadline(), None
        self._ask = lambda: ask(sql, profile, query, limit=1 << 30)
        known, begun = busy(sql), {pid: ticks(pid) for pid in sql.pids}
        self.start()
        until(lambda: busy(sql) - known)
        (self.pid,) = busy(sql) - known
        # A new one loads what it needs first.
        until(lambda: ticks(self.pid) > begun.get(self.pid, 100) + 20)
        assert self.error is None

    def run(self):
        try:
            with within(self.deadline):
                self._ask()
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            self.error = error

    def ended(self):
        """How it ended."""
        self.join(HANG_S)
        assert not self.is_alive()
        return self.error


def busy(sql):
    return {working.pid for working in sql._busy}


def last(sql):
    """The process that was used last."""
    return sql._idle[-1][0].pid


def kill_idle(sql, profile):
    """End all processes, which have nothing to do."""
    ask(sql, profile, "select 1")
    for idle, _ in sql._idle:
        os.kill(idle.pid, signal.SIGKILL)
        until(lambda idle=idle: not idle.is_alive())
