"""Errors as RFC 9457 problem documents.

Every answer that is no success is ``application/problem+json`` with ``type``, ``title``,
``status``, ``detail`` (one line) and ``code``, the name of the gRPC status that the other face
would give for the same fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from peakline.errors import PeaklineError, UnforeseenError, UsageError
from peakline.service.metrics import Metrics

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1
"""What a busy server asks for: the queue moves on within about this many seconds."""

STATUS_OF_CODE: Mapping[str, int] = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "DATA_LOSS": 422,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}

_CODE_OF_STATUS = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    421: "INVALID_ARGUMENT",
}
_TITLES = {499: "Client Closed Request", 422: "Unprocessable Content", 413: "Content Too Large"}
_LONGEST_DETAIL = 2000


class TooLargeError(UsageError):
    """The body of a request is larger than the server takes."""

    http_status = 413


class UnsupportedError(UsageError):
    """The media type or the content of a request's body is none that the server takes."""

    http_status = 415


class Problem(Struct, kw_only=True):
    """What went wrong (RFC 9457)."""

    type: Annotated[str, Meta(description="the title says it all", examples=["about:blank"])] = (
        "about:blank"
    )
    title: Annotated[str, Meta(description="the HTTP status in words", examples=["Not Found"])]
    status: Annotated[int, Meta(description="the HTTP status", ge=400, le=599, examples=[404])]
    detail: Annotated[
        str,
        Meta(
            description="what, where, what to do: one line",
            examples=["no tool 'nosuch'; there is: graph, memory_findings, ..."],
        ),
    ]
    code: Annotated[str, Meta(description="the name of the gRPC status", examples=["NOT_FOUND"])]


def problem_response(
    status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    """A problem document; ``detail`` is put on one line and cut where it is endless."""
    line = " ".join(detail.split())
    if len(line) > _LONGEST_DETAIL:
        line = line[: _LONGEST_DETAIL - 3] + "..."
    document = {
        "type": "about:blank",
        "title": _TITLES.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "detail": line,
        "code": code,
    }
    return Response(json.dumps(document), status, headers, media_type=MEDIA_TYPE)


def problem_of(error: PeaklineError, public_text: Callable[[PeaklineError], str]) -> Response:
    """The problem document of an error that was raised on purpose, in words for callers."""
    code = error.grpc_status
    status = getattr(error, "http_status", STATUS_OF_CODE[code])
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in {429, 503} else {}
    return problem_response(status, code, public_text(error), headers)


def handlers(public_text: Callable[[PeaklineError], str], metrics: Metrics) -> dict[Any, Any]:
    """What answers every error with a problem document, by the class of the error.

    ``public_text`` makes a message one that callers may see: without the server's own paths.
    """

    async def on_peakline(_: Request, error: PeaklineError) -> Response:
        if isinstance(error, UnforeseenError):
            raise error  # as whatever nobody foresaw: the caller gets an id
        answer = problem_of(error, public_text)
        reason = {413: "size", 429: "busy"}.get(answer.status_code)
        if reason is not None:
            metrics.refused(reason)
        return answer

    async def on_http(request: Request, error: HTTPException) -> Response:
        status = error.status_code
        headers = dict(error.headers or {})
        detail = str(error.detail)
        if status == 404:
            detail = "no such path; /openapi.json lists those there are"
        elif status == 405:
            allowed = ", ".join(sorted(headers.get("Allow", "").split(", ")))
            headers["Allow"] = allowed
            detail = f"{request.method:.20} is not for this path; allowed: {allowed}"
        return problem_response(status, _CODE_OF_STATUS.get(status, "UNKNOWN"), detail, headers)

    return {PeaklineError: on_peakline, HTTPException: on_http}
