"""Runs commands of Peakline in children of its own, each of which may end by SIGKILL at a moment.

Reads a JSON line for every command: ``words``, ``at``. A moment is the number of a call, of Python
or C, in any thread, since the command began; without ``at`` the command runs to its end. Prints a
JSON line for each: ``code`` (negative: the signal) and, of one that ran to its end, ``calls``,
``began``, the first call that writes (`WRITERS`), and ``done``, the one after which all is written.
"""

import importlib
import json
import os
import signal
import sys
import threading
from contextlib import suppress

from peakline.__main__ import main as peakline

WRITERS = {"write_atomically", "whole_folder", "create_session", "release", "_append"}


class Counter:
    """Counts calls; ends the process at one of them."""

    def __init__(self, at):
        self.calls, self.began, self.done, self.at = 0, 0, 0, at

    def __call__(self, frame, event, _argument):
        if event in ("call", "return") and frame.f_code.co_name in WRITERS:
            self.began, self.done = self.began or self.calls + 1, self.calls
        if event not in ("call", "c_call"):
            return
        self.calls += 1
        if self.calls == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def run(words, at, report):
    """The command, in this process; what was counted goes to the descriptor ``report``."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    counter = Counter(at)
    threading.setprofile(counter)
    sys.setprofile(counter)
    try:
        code = peakline(words)
    finally:
        sys.setprofile(None)
    result = {name: getattr(counter, name) for name in ("calls", "began", "done")}
    result["modules"] = list(sys.modules)
    with os.fdopen(report, "w") as stream:
        json.dump(result, stream)
    os._exit(code)


def main():
    for line in sys.stdin:
        command = json.loads(line)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            run(command["words"], command["at"], writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            counted = json.loads(stream.read() or "{}")
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        # The next one need not import what this one did.
        for name in counted.pop("modules", ()):
            with suppress(ImportError):
                importlib.import_module(name)
        sys.stdout.write(json.dumps({"code": code, **counted}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
