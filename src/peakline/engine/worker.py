"""The process on the other side of `peakline.engine.processes`."""

from __future__ import annotations

import os
import sys
import threading
from queue import SimpleQueue

from peakline.engine.processes import read_frame, write_frame
from peakline.engine.work import reply


def main() -> None:
    """Answer what comes through standard input, until that ends."""
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Whatever else is printed is no answer, and nobody else may take a question away.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    tasks: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        while (task := read_frame(asked)) is not None:
            tasks.put(task)
        # Whoever asked is gone, and with it the one who could use what is being worked on.
        sys.stderr.flush()
        os._exit(0)

    threading.Thread(target=listen, name="listen", daemon=True).start()
    while True:
        write_frame(answers, reply(tasks.get()))
