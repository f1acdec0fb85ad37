"""The route of uploads: a profile from somewhere else becomes a session."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response

from peakline.errors import PeaklineError, UnknownFormatError
from peakline.repository import HostFile, check_name
from peakline.service.http.answers import json_response, notes_header
from peakline.service.http.bodies import media_type
from peakline.service.http.describe import DOING, described, json_answer
from peakline.service.http.documents import SessionDocument
from peakline.service.http.middleware import note_request
from peakline.service.http.parameters import UploadQuery
from peakline.service.http.problems import TooLargeError, UnsupportedError
from peakline.service.http.requests import accepted
from peakline.service.http.routing import Routes
from peakline.service.http.session_routes import NOTES, document_of, location_of, session_document
from peakline.service.uploading import ExpandsError

routes = Routes("uploads", "/api")

_FORMS = frozenset(("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"))
"""What a page may send to another site without asking; no type at all is one of them."""

_SUFFIXES = (".gz", ".pb", ".xplane")


@routes.post(
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
        kept = await context.work.upload(request, store)
    except UnknownFormatError as error:
        raise UnsupportedError(str(error)) from error
    except ExpandsError as error:
        raise TooLargeError(str(error)) from error
    session_id = _session_of(kept.path)
    note_request(request, session=session_id, host=kept.host)

    def work() -> Response:
        headers = {"Location": location_of(query.root, session_id)}
        try:
            document = session_document(context, query.root, session_id)
        except PeaklineError as error:
            # The session is there, whatever hinders a look at it now.
            document = document_of(session_id, [kept], [])
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
