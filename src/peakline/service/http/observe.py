"""What happens around every request: its id, the security headers, one line in the log, a count.

This wraps everything else, refusals included, and decides nothing. It also answers for whatever
nobody foresaw: the caller gets an id, the log gets the traceback. And it makes ``HEAD`` of every
``GET``.
"""

from __future__ import annotations

import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.http.problems import problem_response
from peakline.service.metrics import Metrics

_FACE = "http"
_NOTED = ("session", "tool", "host", "request_id")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Set where the answer does not say something else: data for programs, not for a page's script."""


class Observe:
    """Pure ASGI middleware, the outermost."""

    def __init__(self, app: ASGIApp, access: Access, log: AccessLog, metrics: Metrics) -> None:
        self._app = app
        self._access = access
        self._log = log
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on what is no request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._metrics.in_flight(_FACE):
            await self._observed(scope, receive, send)

    async def _observed(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        method = scope["method"]
        request_id = self._access.request_id(Headers(scope=scope).getlist("x-request-id"))
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, request_id, without_body=method == "HEAD")
        inner: dict[str, Any] = {**scope, "method": "GET"} if method == "HEAD" else dict(scope)
        try:
            await self._app(inner, receive, answer.send)
        except Exception as error:  # noqa: BLE001  (whatever it is, the caller gets an answer)
            self._log.failure(request_id, error)
            if not answer.status:
                problem = problem_response(500, "INTERNAL", f"internal error ({request_id})")
                await problem(inner, receive, answer.send)
        finally:
            seconds = time.perf_counter() - began
            name = f"{method} {_path_format(inner)}"
            code = str(answer.status or 499)
            self._metrics.observe(_FACE, name, code, seconds)
            noted = {key: scope["state"].get(key, "") for key in _NOTED}
            self._log.write(
                _FACE,
                name,
                str((scope.get("client") or ("",))[0]),
                code,
                seconds,
                answer.sent_bytes,
                **noted,
            )


class _Answer:
    """Sends what the application sends, with the common headers, and remembers it."""

    def __init__(self, send: Send, request_id: str, *, without_body: bool) -> None:
        self._send = send
        self._request_id = request_id
        self._without_body = without_body
        self.status = 0
        self.sent_bytes = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self._request_id
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        elif message["type"] == "http.response.body":
            if self._without_body:
                message = {**message, "body": b""}
            self.sent_bytes += len(message.get("body", b""))
        await self._send(message)


def note_request(request: Request, *, session: str = "", tool: str = "", host: str = "") -> None:
    """What the request is about, for its line in the log."""
    request.scope["state"].update(session=session, tool=tool, host=host)


def _path_format(scope: dict[str, Any]) -> str:
    """The route's pattern: the log and the counters have few names, whatever callers ask for."""
    route = scope.get("route")
    return str(getattr(route, "path_format", getattr(route, "path", None)) or "(no route)")
