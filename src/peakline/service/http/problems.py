"""Errors as RFC 9457 problem documents.

Every answer that is no success is ``application/problem+json`` with ``type``, ``title``,
``status``, ``detail`` (one line) and ``code``, the name of the gRPC status that the other face
would give for the same fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException

from peakline.errors import PeaklineError, UsageError
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


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = Field("about:blank", description="the title says it all", examples=["about:blank"])
    title: str = Field(description="the HTTP status in words", examples=["Not Found"])
    status: int = Field(description="the HTTP status", ge=400, le=599, examples=[404])
    detail: str = Field(
        description="what, where, what to do: one line",
        examples=["no tool 'nosuch'; there is: graph, memory_findings, ..."],
    )
    code: str = Field(description="the name of the gRPC status", examples=["NOT_FOUND"])


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


def complaint(errors: Sequence[Any], kind: str) -> str:
    """The first thing that a validation found, in one line; ``kind`` names what was validated."""
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"])
    message = " ".join(str(first["msg"]).split())
    message = message[:1].lower() + message[1:]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    if first["type"] == "extra_forbidden":
        return f"{kind} {place!r:.100} is none that this takes{more}"
    subject = f"{kind} {place!r:.100}" if place else kind
    return f"{subject}: {message}{more}"


def install(app: FastAPI, public_text: Callable[[PeaklineError], str], metrics: Metrics) -> None:
    """Make ``app`` answer every error with a problem document.

    ``public_text`` makes a message one that callers may see: without the server's own paths.
    """

    @app.exception_handler(PeaklineError)
    async def on_peakline(_: Request, error: PeaklineError) -> Response:
        answer = problem_of(error, public_text)
        reason = {413: "size", 429: "busy"}.get(answer.status_code)
        if reason is not None:
            metrics.refused(reason)
        return answer

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        status = error.status_code
        headers = dict(error.headers or {})
        detail = str(error.detail)
        if status == 404:
            detail = "no such path; /openapi.json lists those there are"
        elif status == 405:
            if "GET" in headers.get("Allow", ""):
                headers["Allow"] += ", HEAD"
            allowed = headers.get("Allow", "")
            detail = f"{request.method:.20} is not for this path; allowed: {allowed}"
        return problem_response(status, _CODE_OF_STATUS.get(status, "UNKNOWN"), detail, headers)

    @app.exception_handler(RequestValidationError)
    async def on_validation(_: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        kind = {"query": "parameter", "path": "path", "header": "header"}
        where = str(found[0]["loc"][0]) if found and found[0]["loc"] else ""
        stripped = [{**each, "loc": each["loc"][1:]} for each in found]
        return problem_response(
            400, "INVALID_ARGUMENT", complaint(stripped, kind.get(where, "body"))
        )

    @app.exception_handler(ValidationError)
    async def on_model(_: Request, error: ValidationError) -> Response:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        return problem_response(400, "INVALID_ARGUMENT", complaint(found, "body field"))
