"""What happens around every request: its id, the security headers, one line in the log, a count.

This wraps everything else, refusals included, and decides nothing. It also answers for whatever
nobody foresaw: the caller gets an id, the log gets the traceback. And it makes ``HEAD`` of every
``GET``.
"""

from __future__ import annotations

import re
import secrets
import time
from typing import TYPE_CHECKING, Any

from starlette.datastructures import MutableHeaders

from peakline.service.access_log import AccessRecord
from peakline.service.http.problems import problem_response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from peakline.service.access import Access
    from peakline.service.access_log import AccessLog
    from peakline.service.metrics import Metrics

__all__ = ["Observe", "note_request"]

_FACE = "http"
_GIVEN_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
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
        request_id = _request_id(scope, self._access)
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
            noted = scope["state"]
            self._log.write(
                AccessRecord(
                    face=_FACE,
                    method=name,
                    peer=_peer(scope),
                    code=code,
                    seconds=seconds,
                    sent_bytes=answer.sent_bytes,
                    session=noted.get("session", ""),
                    tool=noted.get("tool", ""),
                    host=noted.get("host", ""),
                    request_id=request_id,
                )
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


def _request_id(scope: Scope, access: Access) -> str:
    """The caller's own id where it is a plain word, and no token, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _GIVEN_ID.fullmatch(value):
            given = str(value.decode("ascii"))
            if access.guarded and access.token_matches(f"Bearer {given}"):
                break
            return given
    return secrets.token_hex(8)


def _path_format(scope: dict[str, Any]) -> str:
    """The route's pattern: the log and the counters have few names, whatever callers ask for."""
    route = scope.get("route")
    return str(getattr(route, "path_format", getattr(route, "path", None)) or "(no route)")


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return "" if client is None else str(client[0])
