"""Work in threads, under a deadline that a caller who hangs up ends, also answered line by line.

The event loop never decodes a profile. Every question runs in a thread with its `Deadline` in the
context, once the gate lets it in; meanwhile the connection is watched, and when the client goes
away the deadline is cancelled, so that the work stops at its next look at it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

import anyio.from_thread
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from peakline.deadline import Deadline, within
from peakline.engine import Gate
from peakline.engine.gate import Caller
from peakline.errors import CancelledError, DeadlineError, PeaklineError
from peakline.service.access import Access
from peakline.service.callers import caller_of
from peakline.service.capturing import HELD_THREADS
from peakline.service.core import LISTS, Analysis
from peakline.service.http.answers import json_response
from peakline.service.http.problems import TooLargeError
from peakline.service.settings import Settings
from peakline.service.workers import Workers, inside

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
        run: Callable[[Callable[[], object]], Coroutine[Any, Any, object]],
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._work, self._failed, self._run = work, failed, run

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Do the work and send what it reports."""
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[bytes | None] = asyncio.Queue()

        def send_line(document: dict[str, Any]) -> None:
            line = json.dumps(document, allow_nan=False).encode() + b"\n"
            loop.call_soon_threadsafe(lines.put_nowait, line)

        run = asyncio.create_task(self._run(lambda: self._work(send_line)))
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


_T = TypeVar("_T")

_READERS = 4
_UPLOADS = 8
"""Threads for uploads: their gate lets fewer in."""
_LEAST_UPLOAD_BYTES_PER_S = 1 << 20
"""Slower uploads end with the timeout of a request: nobody holds a thread for hours."""


class Work:
    """The threads of one server.

    Answers have a thread each while they are inside a gate of the analyses, and none while they
    wait. Captures and uploads, which mostly wait for others, have threads of their own.
    """

    def __init__(self, settings: Settings, analysis: Analysis, access: Access) -> None:
        self._timeout_s = settings.request_timeout_s
        self._capture_s = settings.max_capture_s
        self._max_upload_bytes = settings.max_upload_bytes
        self._gate = analysis.gate
        self._uploads_gate = analysis.uploads.gate
        self._access = access
        self._answers = Workers(settings.max_concurrent + LISTS, "http-answer")
        self._captures = Workers(HELD_THREADS, "http-capture")
        self._uploads = anyio.CapacityLimiter(_UPLOADS)
        self._readers = anyio.CapacityLimiter(_READERS)

    def close(self) -> None:
        """Begin nothing more."""
        self._answers.close()
        self._captures.close()

    async def answer(
        self, request: Request, work: Callable[[], _T], *, gate: Gate | None = None
    ) -> _T:
        """What ``work`` returns; it waits for its turn at ``gate`` (by default that of the
        analyses), and together with that takes no longer than the timeout of a request.
        """
        deadline = Deadline(self._timeout_s)
        return await self._run(
            request, work, deadline=deadline, workers=self._answers, gate=gate or self._gate
        )

    async def json(self, request: Request, work: Callable[[], object]) -> Response:
        """As `answer`, of what ``work`` returns as JSON."""
        return await self.answer(request, lambda: json_response(request, work()))

    async def read(self, work: Callable[[], _T]) -> _T:
        """What ``work`` returns, which only reads a small file."""
        return await anyio.to_thread.run_sync(work, limiter=self._readers)

    async def capture(self, request: Request, work: Callable[[], _T]) -> _T:
        """As `answer`, for a capture and what comes after it."""
        deadline = Deadline(self._capture_s + self._timeout_s)
        return await self._run(request, work, deadline=deadline, workers=self._captures)

    def streamed_capture(
        self,
        request: Request,
        work: Callable[[SendLine], object],
        failed: Callable[[BaseException], dict[str, Any]],
    ) -> Lines:
        """As `capture`, with an answer that is sent line by line, as ``work`` reports it."""
        deadline = Deadline(self._capture_s + self._timeout_s)
        run = partial(self._run, request, deadline=deadline, workers=self._captures)
        return Lines(work, failed=failed, run=run)

    async def upload(self, request: Request, store: Callable[[Iterator[bytes]], _T]) -> _T:
        """What ``store`` makes of the request's body, which it gets in pieces as they arrive.

        The iterator raises TooLargeError beyond the limit of an upload, CancelledError when the
        client goes away, DeadlineError when the bytes come too slowly.
        """
        limit = self._max_upload_bytes
        result = request.headers.get("content-length", "")
        if result.isascii() and result.isdigit() and int(result) > limit:
            raise _too_large(limit)
        deadline = Deadline(self._timeout_s + limit / _LEAST_UPLOAD_BYTES_PER_S)
        pieces = _Body(request, limit, self._timeout_s)

        def work() -> _T:
            with within(deadline):
                return store(iter(pieces))

        async with inside(self._uploads_gate, self._caller(request), deadline):
            return await anyio.to_thread.run_sync(work, limiter=self._uploads)

    async def _run(
        self,
        request: Request,
        work: Callable[[], _T],
        *,
        deadline: Deadline,
        workers: Workers,
        gate: Gate | None = None,
    ) -> _T:
        watcher = asyncio.create_task(_cancel_on_disconnect(request.receive, deadline))
        try:
            return await workers.run(
                work, deadline=deadline, caller=self._caller(request), gate=gate
            )
        finally:
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watcher

    def _caller(self, request: Request) -> Caller:
        address = "" if request.client is None else request.client.host
        return caller_of(self._access, request.headers.get("authorization"), address)


class _Body:
    """The pieces of a request's body, for a thread."""

    def __init__(self, request: Request, limit: int, timeout_s: float) -> None:
        self._request = request
        self._limit = limit
        self._timeout_s = timeout_s

    def __iter__(self) -> Iterator[bytes]:
        began, received, more = time.monotonic(), 0, True
        while more:
            allowed_s = self._timeout_s + received / _LEAST_UPLOAD_BYTES_PER_S
            left = allowed_s - (time.monotonic() - began)
            piece, more = anyio.from_thread.run(self._next, left)
            received += len(piece)
            if received > self._limit:
                raise _too_large(self._limit)
            if piece:
                yield piece

    async def _next(self, timeout_s: float) -> tuple[bytes, bool]:
        try:
            async with asyncio.timeout(timeout_s):
                message = await self._request.receive()
        except TimeoutError:
            raise DeadlineError("the upload is too slow: less than 1 MiB a second") from None
        if message["type"] == "http.disconnect":
            raise CancelledError("the upload ended before its end")
        return message.get("body", b""), message.get("more_body", False)


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"an upload may have at most {limit} bytes here")


async def _cancel_on_disconnect(receive: Receive, deadline: Deadline) -> None:
    """Wait until the client goes away; what is left of a body is thrown away meanwhile."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            deadline.cancel()
            return
