"""What surrounds every request: who may send it, its id, security headers, its line in the log.

`Observe` wraps everything else, refusals included, and decides nothing. It also answers for
whatever nobody foresaw: the caller gets an id, the log gets the traceback. And it makes ``HEAD`` of
every ``GET``.

`Guard` checks the Host header, then the origin of a change, then the token. A page of another site
can make its visitor's browser send requests to this machine. It cannot choose the Host header (so a
name that was pointed at this machine is seen), and it cannot hide where a change comes from:
browsers send ``Origin``, and newer ones ``Sec-Fetch-Site``, with it. Programs that are no browser
send neither and are held by the token alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.deliveries import Deliveries
from peakline.service.http.problems import RETRY_AFTER_S, problem_response
from peakline.service.metrics import Metrics

_FACE = "http"
_PIECE_BYTES = 64 << 10
_LONGEST_URL = 16 << 10
_LONGEST_HEADERS = 16 << 10
LONGEST_HEAD = _LONGEST_URL + _LONGEST_HEADERS + (1 << 10)
"""Bytes of a request's head: no longer one is read to its end."""
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

    def __init__(
        self, app: ASGIApp, access: Access, log: AccessLog, metrics: Metrics, deliveries: Deliveries
    ) -> None:
        self._app = app
        self._access = access
        self._log = log
        self._metrics = metrics
        self._deliveries = deliveries

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
        hang_up = scope["state"].get(HANG_UP, _nothing)
        answer = _Answer(send, request_id, self._deliveries, hang_up, without_body=method == "HEAD")
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

    def __init__(
        self,
        send: Send,
        request_id: str,
        deliveries: Deliveries,
        hang_up: Callable[[], object],
        *,
        without_body: bool,
    ) -> None:
        self._send = send
        self._request_id = request_id
        self._deliveries, self._hang_up = deliveries, hang_up
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
            body = b"" if self._without_body else message.get("body", b"")
            self.sent_bytes += len(body)
            if len(body) > _PIECE_BYTES:
                await self._deliver(message, body)
                return
            message = {**message, "body": body}
        await self._send(message)

    async def _deliver(self, message: Message, content: bytes) -> None:
        """Send a large body. What a client does not read of it is in the connection's buffer: no
        more than a piece.
        """
        delivery = self._deliveries.add(content, self._hang_up)
        body = memoryview(content)
        try:
            while len(body) > _PIECE_BYTES:
                await self._send({**message, "body": body[:_PIECE_BYTES], "more_body": True})
                body = body[_PIECE_BYTES:]
            await self._send({**message, "body": body})
        finally:
            self._deliveries.remove(delivery)


def _nothing() -> None:
    """For requests that came over no connection."""


def note_request(request: Request, *, session: str = "", tool: str = "", host: str = "") -> None:
    """What the request is about, for its line in the log."""
    request.scope["state"].update(session=session, tool=tool, host=host)


def _path_format(scope: dict[str, Any]) -> str:
    """The route's pattern: the log and the counters have few names, whatever callers ask for."""
    route = scope.get("route")
    return str(getattr(route, "path_format", getattr(route, "path", None)) or "(no route)")


HANG_UP = "hang_up"
"""In the state of a request: ends its connection."""

NO_PLACE = "no_place"
"""In the state of a request whose connection came when all places were taken."""

HEALTH = "/healthz"

OPEN_PATHS = frozenset((HEALTH, "/"))
"""What is answered without a token: health, and the page."""

OPEN_PREFIX = "/assets/"
"""And what the page is made of. It holds no data: the page asks for a token, and shows it."""

_READING = frozenset(("GET", "HEAD", "OPTIONS"))
CAPTURE_BY_READING = "/data/plugin/profile/capture_profile"
"""The route of XProf's that captures although it is read."""
_EXPOSED = "ETag, Location, Retry-After, Peakline-Warnings, Peakline-Notes, X-Request-Id"
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match, X-Request-Id",
    "Access-Control-Max-Age": "600",
}


class Guard:
    """Pure ASGI middleware that answers refused requests itself."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self._app = app
        self._access = access
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        method, path = scope["method"], scope["path"]
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        shown = headers.getlist("authorization")
        is_ours = len(hosts) == 1 and self._access.host_header_allowed(hosts[0])
        allowed = (
            is_ours and len(origins) == 1 and self._access.origin_allowed(origins[0], hosts[0])
        )
        answer: ASGIApp = self._app
        if scope.get("state", {}).get(NO_PLACE) and path != HEALTH:
            answer = _no_place()
        elif (too_long := _too_long(scope)) is not None:
            answer = self._refuse("size", too_long)
        elif not is_ours:
            answer = self._refuse("host", _wrong_host(hosts))
        elif _changes(method, path) and _cross_origin(headers, method, allowed=allowed):
            refusal = "a page of another site may change nothing here"
            answer = self._refuse("origin", problem_response(403, "PERMISSION_DENIED", refusal))
        elif method == "OPTIONS" and origins and "access-control-request-method" in headers:
            refusal = "this origin is none of those allowed here"
            answer = problem_response(403, "PERMISSION_DENIED", refusal)
            if allowed:
                answer = Response(status_code=204, headers=_PREFLIGHT)
        # Two headers would leave it open which of them counts.
        elif not (path in OPEN_PATHS or path.startswith(OPEN_PREFIX)) and (
            len(shown) > 1 or not self._access.token_matches(shown[0] if shown else None)
        ):
            refusal = "send the server's token: Authorization: Bearer TOKEN"
            scheme = {"WWW-Authenticate": 'Bearer realm="peakline"'}
            answer = self._refuse(
                "token", problem_response(401, "UNAUTHENTICATED", refusal, scheme)
            )
        elif not _is_text(scope):
            refusal = "a request's path and parameters are UTF-8, without zero bytes"
            answer = problem_response(400, "INVALID_ARGUMENT", refusal)
        await answer(scope, receive, _with_cors(send, origins[0]) if allowed else send)

    def _refuse(self, reason: str, answer: Response) -> Response:
        self._metrics.refused(reason)
        return answer


def _changes(method: str, path: str) -> bool:
    """Whether a request may change something. XProf's front end captures by reading."""
    return method not in _READING or path.rstrip("/") == CAPTURE_BY_READING


def _cross_origin(headers: Headers, method: str, *, allowed: bool) -> bool:
    """Whether a page which may not do so may be behind this change, by what a browser says.

    Where a page of another site only reads, browsers send no ``Origin``, and without TLS no
    ``Sec-Fetch-Site`` either: then one that says nothing at all is not trusted.
    """
    if "origin" in headers:
        return not allowed
    site = headers.get("sec-fetch-site", "none")
    if site not in {"none", "same-origin"}:
        return True
    says_nothing = "sec-fetch-site" not in headers and method in _READING
    return says_nothing and headers.get("user-agent", "").startswith("Mozilla/")


def _wrong_host(hosts: list[str]) -> Response:
    shown = ascii(hosts[0][:100]) if len(hosts) == 1 else f"{len(hosts)} Host headers"
    return problem_response(
        421,
        "INVALID_ARGUMENT",
        f"this server does not answer for {shown}; --allow-host NAME makes it",
    )


def _too_long(scope: Scope) -> Response | None:
    """What to answer to a URL or to headers that nobody has a use for."""
    url = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    if url > _LONGEST_URL:
        refusal = f"the URL has {url} bytes, and may have {_LONGEST_URL}"
        return problem_response(414, "INVALID_ARGUMENT", refusal)
    headers = sum(len(name) + len(value) for name, value in scope["headers"])
    if headers > _LONGEST_HEADERS:
        refusal = f"the headers have {headers} bytes, and may have {_LONGEST_HEADERS}"
        return problem_response(431, "INVALID_ARGUMENT", refusal)
    return None


def _no_place() -> Response:
    return problem_response(
        503,
        "UNAVAILABLE",
        "there are as many connections as this server takes; try again later",
        {"Retry-After": str(RETRY_AFTER_S), "Connection": "close"},
    )


def _with_cors(send: Send, origin: str) -> Send:
    async def send_with_cors(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = _EXPOSED
            headers.add_vary_header("Origin")
        await send(message)

    return send_with_cors


def _is_text(scope: Scope) -> bool:
    """Whether what the caller escaped is UTF-8 and without zero bytes.

    Frameworks replace what is not UTF-8 by question marks, and then ask for another name than
    the caller wrote.
    """
    for text in (scope.get("raw_path") or b"", scope.get("query_string") or b""):
        decoded = unquote_to_bytes(text)
        if b"\x00" in decoded:
            return False
        try:
            decoded.decode("utf-8")
        except UnicodeDecodeError:
            return False
    return True
