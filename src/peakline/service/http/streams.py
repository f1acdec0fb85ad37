"""Answers that are told while the work goes on: one JSON document a line."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from peakline.errors import PeaklineError

LINES_TYPE = "application/x-ndjson"
_NOT_WANTED = re.compile(r"q=0(\.0*)?")

SendLine = Callable[[dict[str, Any]], None]
"""Sends a document as the next line; called from the thread that works."""


def wants_lines(request: Request) -> bool:
    """Whether the request's ``Accept`` names lines of JSON, and not with weight 0."""
    for item in ",".join(request.headers.getlist("accept")).lower().split(","):
        name, *parameters = (part.replace(" ", "") for part in item.split(";"))
        if name == LINES_TYPE:
            return not any(map(_NOT_WANTED.fullmatch, parameters))
    return False


class Lines(Response):
    """Sends what ``work``, which ``run`` calls in a thread, reports: each document at once.

    The answer begins with the first line. An error before it is raised, and so becomes a problem
    document; one after it is the last line, what ``failed`` makes of it.
    """

    media_type = LINES_TYPE

    def __init__(
        self,
        work: Callable[[SendLine], object],
        *,
        failed: Callable[[BaseException], dict[str, Any]],
        run: Callable[[Receive, Callable[[], object]], Coroutine[Any, Any, object]],
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._work, self._failed, self._run = work, failed, run

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Do the work and send what it reports."""
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()

        def send_line(document: dict[str, Any]) -> None:
            line = json.dumps(document, allow_nan=False).encode() + b"\n"
            loop.call_soon_threadsafe(lines.put_nowait, line)

        run = asyncio.create_task(self._run(receive, lambda: self._work(send_line)))
        run.add_done_callback(lambda _: lines.put_nowait(None))
        try:
            await self._send(lines, run, send)
        finally:
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)

    async def _send(
        self, lines: asyncio.Queue[bytes | None], run: asyncio.Task[object], send: Send
    ) -> None:
        has_begun = False

        async def put(line: bytes) -> None:
            nonlocal has_begun
            if not has_begun:
                has_begun = True
                await send(
                    {
                        "type": "http.response.start",
                        "status": self.status_code,
                        "headers": self.raw_headers,
                    }
                )
            await send({"type": "http.response.body", "body": line, "more_body": True})

        while (line := await lines.get()) is not None:
            await put(line)
        error = run.exception()
        if error is not None:
            if not has_begun:
                raise error
            await put(json.dumps(self._failed(error)).encode() + b"\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if error is not None and not isinstance(error, PeaklineError):
            raise error  # our own fault: the log has to hold it
