"""A ``peakline`` that starts quickly: each command is a fork of one process that has all imported.

``words()`` is what a shell runs in place of ``python -m peakline``. It hands its arguments,
directory, environment and standard streams to that process, a fork of which runs the command as a
new process would, and exits as the command does. That each verb imports what it needs is not shown
by this: ``tests/cli`` starts Python anew.
"""

from __future__ import annotations

import ast
import atexit
import gc
import importlib
import os
import pkgutil
import select
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

_WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""What NumPy and Arrow start at their import is only in the process that a fork is of."""
_OF_SERVERS = ("peakline.pytest", "peakline.service")
_MOST_BYTES = 1 << 20
_CALLER = """
import array, os, sys, _socket  # not socket: to import that takes as long as all else here
server = _socket.socket(_socket.AF_UNIX)
server.connect(sys.argv[1])
message = os.fsencode(repr((sys.argv[2:], os.getcwd(), dict(os.environ))))
streams = _socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", (0, 1, 2))
server.sendmsg([message], [streams])
sys.exit(int(server.recv(8) or 70))
"""


@cache
def words() -> str:
    """Words of a shell, to be followed by arguments; the process ends with this one."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "caller.py").write_text(_CALLER)
        command = [sys.executable, __file__, folder / "socket"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        stack.enter_context(process)  # closes its standard input, and waits
        process.stdout.readline()
        atexit.register(stack.pop_all().close)
    return f'"{sys.executable}" -IS "{folder}/caller.py" "{folder}/socket"'


def _next(listener: socket.socket) -> socket.socket | None:
    """In a fork, the next caller; None at the end of the standard input."""
    while listener in select.select([0, listener], [], [])[0]:
        caller, _ = listener.accept()
        if os.fork() == 0:
            return caller
        caller.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    return None


def _main(path: str) -> int:
    os.environ.update(_WITHOUT_THREADS)
    import peakline
    from peakline.__main__ import main

    modules = (module.name for module in pkgutil.walk_packages(peakline.__path__, "peakline."))
    for name in ("duckdb", "pyarrow.dataset", *modules):
        if not name.startswith(_OF_SERVERS):
            importlib.import_module(name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        caller = _next(listener)
    if caller is None:
        return 0
    message, streams, _, _ = socket.recv_fds(caller, _MOST_BYTES, 3)
    arguments, folder, environment = ast.literal_eval(os.fsdecode(message))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    code = main(arguments)
    threading._shutdown()  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    sys.stdout.flush()
    caller.send(str(code).encode())
    os._exit(code)  # to clear all modules would take as long as most commands


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
