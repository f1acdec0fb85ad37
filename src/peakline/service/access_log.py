"""The access log: one JSON object a line for every request, and what went wrong inside.

A line never holds a token, a query or an answer: a token that a caller put in another place, a name
for one, is left out. Text from callers is cut and has its control
characters escaped (JSON does that, in ASCII), so that a reader's terminal is safe.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from peakline.errors import UnforeseenError, UsageError
from peakline.safe_text import for_log

STDERR = "-"
OFF = "off"
_LONGEST_FIELD = 200
_LONGEST_TRACE = 8000


class AccessLog:
    """Where the lines go: ``-`` standard error, ``off`` nowhere, else a file that is appended to.

    ``hide`` takes what nobody may read out of a text. Safe to use from several threads. A line
    that cannot be written is dropped and counted in ``dropped``: a full disk does not end the
    service. Raises UsageError when the file cannot be opened.
    """

    def __init__(
        self, target: str = STDERR, *, debug: bool = False, hide: Callable[[str], str] = str
    ) -> None:
        self._target = target
        self._debug = debug
        self.hide = hide
        self._lock = threading.Lock()
        self._file: IO[str] | None = None
        self._listening: tuple[logging.Handler, int] | None = None
        self.dropped = 0
        self.reopen()

    def reopen(self) -> None:
        """Open the file anew, for whoever rotates logs. On failure the old one stays in use."""
        if self._target in (STDERR, OFF):
            return
        try:
            fresh = Path(self._target).open("a", encoding="utf-8")  # noqa: SIM115
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"--access-log {self._target}: cannot be written: {reason}") from None
        with self._lock:
            old, self._file = self._file, fresh
        if old is not None:
            _close(old)

    def write(
        self,
        face: str,
        method: str,
        peer: str,
        code: str,
        seconds: float,
        sent_bytes: int = 0,
        **named: str,
    ) -> None:
        """Add the line of one finished request.

        ``face`` is ``grpc`` or ``http``, ``method`` the RPC or route, ``code`` the gRPC status
        name or the HTTP status, ``seconds`` how long it took, ``sent_bytes`` the size of the
        answer. ``named`` is what the caller named (``session``, ``tool``, ``host``,
        ``request_id``), empty where it named nothing.
        """
        self._line(
            {
                "time": _now(),
                "face": face,
                "method": self._cut(method),
                "peer": self._cut(peer),
                "code": self._cut(code),
                "seconds": round(seconds, 6),
                "bytes": sent_bytes,
                **{name: self._cut(value) for name, value in named.items() if value},
            }
        )

    def failure(self, request_id: str, error: BaseException) -> None:
        """Add what an unexpected error was; callers get only ``request_id``."""
        own = error.trace if isinstance(error, UnforeseenError) else ""
        trace = self.hide(own or "".join(traceback.format_exception(error)))
        if not self._debug:
            trace = trace[-_LONGEST_TRACE:]
        self._line(
            {
                "time": _now(),
                "error": type(error).__name__,
                "request_id": request_id,
                "traceback": trace,
            }
        )

    def event(self, event: str, **fields: object) -> None:
        """Add a line about the server itself: its start, its end, a reload."""
        shown = {
            name: self.hide(one) if isinstance(one, str) else one for name, one in fields.items()
        }
        self._line({"time": _now(), "event": event, **shown})

    def listen(self) -> None:
        """Take what libraries complain about as lines of this log; with ``debug`` all they say."""
        root = logging.getLogger()
        self._listening = (_Libraries(self), root.level)
        least = logging.INFO if self._debug else logging.ERROR
        # A library that sets a level of its own is not held by the root's.
        self._listening[0].setLevel(least)
        root.addHandler(self._listening[0])
        root.setLevel(least)

    def close(self) -> None:
        """Close the file; later lines are dropped."""
        if self._listening is not None:
            handler, level = self._listening
            self._listening = None
            logging.getLogger().removeHandler(handler)
            logging.getLogger().setLevel(level)
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            _close(file)

    def _cut(self, text: str) -> str:
        text = self.hide(text)
        return text if len(text) <= _LONGEST_FIELD else text[: _LONGEST_FIELD - 3] + "..."

    def _line(self, fields: dict[str, object]) -> None:
        if self._target == OFF:
            return
        line = json.dumps(fields, default=str) + "\n"
        with self._lock:
            stream = sys.stderr if self._target == STDERR else self._file
            try:
                if stream is None:
                    self.dropped += 1
                    return
                stream.write(for_log(line) if self._target == STDERR else line)
                stream.flush()
            except (OSError, ValueError):
                self.dropped += 1


class _Libraries(logging.Handler):
    def __init__(self, log: AccessLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Add one line; the text may hold a traceback."""
        text = self._log.hide(self.format(record))[-_LONGEST_TRACE:]
        self._log.event("library", logger=record.name, level=record.levelname, message=text)


def _close(file: IO[str]) -> None:
    # On a full disk the rest of a line is still in the stream, and stays unwritten.
    with contextlib.suppress(OSError):
        file.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
