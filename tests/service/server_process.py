"""`peakline serve` as a process of its own, on free ports, ended with the block."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.waiting import HANG_S

_PEAKLINE = "import sys; from peakline.__main__ import main; sys.exit(main())"
_COLD = (
    f"from peakline.service.background import WarmUp; WarmUp._answer = lambda _: None; {_PEAKLINE}"
)

_PORTS = re.compile(r"(grpcs?)://(\S+):(\d+) and (https?)://(\S+):(\d+);")


def serve_command(*words: object, code: str = _PEAKLINE) -> list[str]:
    return [sys.executable, "-c", code, "serve", *map(str, words)]


@dataclass
class ServerProcess:
    """A running server; ``lines`` is what it said on standard error so far."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    grpc_port: int = 0
    http_port: int = 0
    announced: str = ""
    has_said_all: bool = False
    _said: threading.Condition = field(default_factory=threading.Condition)

    def read(self) -> None:
        for line in self.process.stderr:
            with self._said:
                self.lines.append(line.rstrip("\n"))
                self._said.notify_all()
        with self._said:
            self.has_said_all = True
            self._said.notify_all()

    def wait_for(self, pattern: str, since: int = 0) -> str:
        """The first line with ``pattern``."""
        with self._said:
            while True:
                result = [line for line in self.lines[since:] if re.search(pattern, line)]
                if result:
                    return result[0]
                assert not self.has_said_all, f"ended without {pattern!r}: {self.lines}"
                assert self._said.wait(HANG_S), f"never said {pattern!r}: {self.lines}"

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(HANG_S)


@contextmanager
def running_server(
    *words: object, warms_up: bool = True, before: str = ""
) -> Iterator[ServerProcess]:
    """Serve with these words besides free ports; waits until both faces answer.

    One that does not warm up asks itself nothing beforehand: it costs a second less, and what it
    holds is what it was asked for. ``before`` is code that the process runs first.
    """
    code = f"{before}\n{_PEAKLINE if warms_up else _COLD}"
    command = serve_command(*words, "--grpc-port", 0, "--http-port", 0, code=code)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    server = ServerProcess(process)
    reader = threading.Thread(target=server.read)
    reader.start()
    try:
        server.announced = server.wait_for(r"peakline: serving")
        result = _PORTS.search(server.announced)
        assert result, server.announced
        server.grpc_port, server.http_port = int(result[3]), int(result[6])
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(HANG_S)
        reader.join(HANG_S)
        process.stderr.close()
