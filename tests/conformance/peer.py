"""Programs of the peers' environment, asked by subprocess: nothing of it is imported into ours."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).parent / "peers"


class Refused(Exception):
    """The peer's error, in its words."""


class Crashed(Exception):
    """The peer's process ended instead of answering."""


def peers_python() -> str:
    """The interpreter of the peers' environment; without one the test is skipped."""
    python = os.environ.get("PEAKLINE_PEERS_PYTHON")
    if not python:
        pytest.skip("PEAKLINE_PEERS_PYTHON does not name the peers' interpreter")
    return python


class Peer:
    """One of the programs in ``peers``: started by the first question, and again after a crash."""

    def __init__(self, program: str, *words: str) -> None:
        self._command = [peers_python(), str(PROGRAMS / program), *words]
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (closed with the rest)

    def ask(self, request: Any) -> Any:
        """Its answer; `Refused` with its error, or `Crashed`."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
            )
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._end()
            self._errors.seek(0)
            # By a signal: the library crashed. Everything else is a fault of the program.
            assert code < 0, self._errors.read()[-3000:]
            raise Crashed(f"signal {-code}")
        reply = json.loads(line)
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["answer"]

    def check_version(self, peer: str) -> None:
        """Fail where the environment has another version than ``peer``, ``NAME-VERSION``."""
        name, _, version = peer.rpartition("-")
        assert self.ask(name) == version, f"the peers' environment has no {peer}"

    def close(self) -> None:
        """End the program."""
        if self._process is not None:
            self._end()
        self._errors.close()

    def _end(self) -> int:
        with self._process as process:
            process.stdin.close()
            process.wait()
        self._process = None
        return process.returncode
