"""The routes by which sessions come about: captures of running jobs, and uploads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from peakline import schema
from peakline.capture import Progress, profile_options
from peakline.errors import PeaklineError, UnknownFormatError, faults_of
from peakline.repository import HostFile, check_name
from peakline.service.http.answers import json_response, notes_header
from peakline.service.http.bodies import media_type
from peakline.service.http.describe import DOING, answer, described, json_answer, reference
from peakline.service.http.documents import (
    CaptureBody,
    CaptureDocument,
    CaptureErrorEvent,
    CaptureProgressEvent,
    CaptureResultEvent,
    SessionDocument,
)
from peakline.service.http.middleware import note_request
from peakline.service.http.parameters import RootQuery, UploadQuery
from peakline.service.http.problems import TooLargeError, UnsupportedError, problem_of
from peakline.service.http.requests import accepted, context_of
from peakline.service.http.routing import Routes
from peakline.service.http.session_routes import NOTES, document_of, location_of, session_document
from peakline.service.http.work import LINES_TYPE, SendLine, wants_lines
from peakline.service.uploading import ExpandsError

upload_routes = Routes("uploads", "/api")

_FORMS = frozenset(("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"))
"""What a page may send to another site without asking; no type at all is one of them."""

_SUFFIXES = (".gz", ".pb", ".xplane")


@upload_routes.post(
    "/uploads",
    summary="Keep a profile as a new session",
    responses=described(
        *DOING,
        _201=json_answer(
            "the session", SessionDocument, headers={"Location": "its document", **NOTES}
        ),
    ),
    extra={
        "requestBody": {
            "required": True,
            "description": "the file as it is, of any format that Peakline reads, known by its "
            "content; of any media type but those of HTML forms",
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        }
    },
)
async def upload(request: Request, query: UploadQuery) -> Response:
    """The body is written to the disk as it comes; what is no profile is not stored."""
    context = accepted(request)
    if media_type(request) in _FORMS:
        raise UnsupportedError(
            "send the file itself, with Content-Type: application/octet-stream (curl -H "
            "'Content-Type: application/octet-stream' --data-binary @FILE)"
        )
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedError("send the file as it is, without Content-Encoding")
    host = query.host or _host_of(query.file_name)
    note_request(request, session=query.session_id, host=host)

    def store(pieces: Iterator[bytes]) -> HostFile:
        return context.analysis.uploads.upload(query.root, query.session_id, host, pieces)

    try:
        stored = await context.work.upload(request, store)
    except UnknownFormatError as error:
        raise UnsupportedError(str(error)) from error
    except ExpandsError as error:
        raise TooLargeError(str(error)) from error
    session_id = _session_of(stored.path)
    note_request(request, session=session_id, host=stored.host)

    def work() -> Response:
        headers = {"Location": location_of(query.root, session_id)}
        try:
            with faults_of(session_id):
                document = session_document(context, query.root, session_id)
        except PeaklineError as error:
            # The session is there, whatever hinders a look at it now.
            document = document_of(session_id, [stored], [])
            headers |= notes_header([context.analysis.public_text(error)])
        return json_response(request, document, 201, headers)

    return await context.work.answer(request, work)


def _session_of(path: str) -> str:
    """The session that a host's file is in: the directory's name."""
    return path.rstrip("/").split("/")[-2]


def _host_of(file_name: str) -> str:
    """The host that a file of that name would be of; its directories do not matter."""
    name = file_name.replace("\\", "/").split("/")[-1]
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return check_name("host", name) if name else ""


routes = Routes("captures", "/api")

_SHOWN = 80
_EVENTS = (CaptureProgressEvent, CaptureResultEvent, CaptureErrorEvent)
_NOTES = {"Peakline-Notes": "what was passed on or understood in another way: a JSON array"}
_LOCATION = {"Location": "the session's document", **_NOTES}


@routes.post(
    "/captures",
    summary="Profile running jobs",
    responses=described(
        *DOING,
        _200=answer(
            "no host recorded anything: no session was made; or, where `Accept` asks for lines, "
            "the capture as it goes, one event a line",
            {
                "application/json": {"schema": reference(CaptureDocument)},
                LINES_TYPE: {"schema": {"oneOf": [reference(event) for event in _EVENTS]}},
            },
            _NOTES,
        ),
        _201=json_answer(
            "a session was made; `outcomes` says of which hosts", CaptureDocument, headers=_LOCATION
        ),
    ),
)
async def capture(request: Request, query: RootQuery, body: CaptureBody) -> Response:
    """Record on all hosts at once. Hosts that fail do not lose the others."""
    context = accepted(request, session=body.session_id, host=",".join(body.hosts))
    if wants_lines(request):
        return context.work.streamed_capture(
            request,
            lambda send: _capture_reporting(send, request, query.root, body),
            lambda error: _failed(request, error),
        )

    def work() -> Response:
        document, notes = _captured(request, query.root, body)
        headers = notes_header(notes)
        if document["empty_trace"]:
            return json_response(request, document, headers=headers)
        headers["Location"] = location_of(query.root, document["session_id"])
        return json_response(request, document, 201, headers)

    return await context.work.capture(request, work)


def _captured(
    request: Request, root: str, body: CaptureBody, progress: Progress | None = None
) -> tuple[dict[str, Any], list[str]]:
    """The document of a capture that was made, and what has to be said beside it."""
    analysis = context_of(request).analysis
    options = profile_options({key: _text(value) for key, value in body.options.items()})
    options.duration_ms = body.duration_ms
    result = analysis.captures.new_session(
        root,
        body.session_id,
        body.hosts,
        schema.ProfileRequest(duration_ms=body.duration_ms, opts=options),
        progress=progress,
    )
    outcomes = [
        {**asdict(outcome), "error": analysis.public_text(outcome.error)}
        for outcome in result.outcomes
    ]
    document = {
        "session_id": result.session_id,
        "empty_trace": result.empty_trace,
        "outcomes": outcomes,
    }
    note_request(request, session=result.session_id, host=",".join(body.hosts))
    accounted = len(outcomes) + len(result.notes)
    return document, [*result.notes, *_notes(body, options, accounted)]


def _capture_reporting(send_line: SendLine, request: Request, root: str, body: CaptureBody) -> None:
    """Capture, and send what happens as it happens."""
    text_of = context_of(request).analysis.public_text

    def progress(host: str, state: str, detail: str) -> None:
        send_line({"event": "progress", "host": host, "state": state, "detail": text_of(detail)})

    document, notes = _captured(request, root, body, progress)
    send_line({"event": "result", **document, "notes": notes})


def _failed(request: Request, error: BaseException) -> dict[str, Any]:
    """The last line of a capture that failed after it had begun: the facts of its problem."""
    if isinstance(error, PeaklineError):
        problem = json.loads(
            bytes(problem_of(error, context_of(request).analysis.public_text).body)
        )
    else:
        fault = f"internal error ({request.scope['state']['request_id']})"
        problem = {"status": 500, "code": "INTERNAL", "detail": fault}
    return {"event": "error", **{name: problem[name] for name in ("status", "code", "detail")}}


def _notes(body: CaptureBody, options: schema.ProfileOptions, profilers: int) -> Iterator[str]:
    """What was understood otherwise than the caller may have meant it."""
    for name in body.options:
        if name in options.advanced_configuration:
            yield (
                f"option {name[:_SHOWN]!a} is no field of ProfileOptions:"
                " it went to the hosts as advanced_configuration"
            )
    if profilers < len(body.hosts):
        yield (
            f"{len(body.hosts)} hosts were named and {profilers} profiled: ports are ignored, and "
            "names of one profiler are one host; --worker NAME=ADDRESS:PORT separates them"
        )


def _text(value: str | int | bool) -> str:
    """A value as the command line spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
