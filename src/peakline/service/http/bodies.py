"""Request bodies that are JSON: of that type, of a bounded size, and what their model says.

They are read here and not by the framework, which reads whatever comes, however long it is,
before anybody looks at its type.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from peakline.errors import CancelledError, UsageError
from peakline.service.http.problems import TooLargeError, UnsupportedError

MAX_JSON_BYTES = 1 << 20
"""A query or the options of a capture have no use for more."""

_M = TypeVar("_M", bound=BaseModel)


async def json_body(request: Request, model: type[_M]) -> _M:
    """The body as ``model``.

    Raises UnsupportedError for another media type, TooLargeError beyond `MAX_JSON_BYTES`,
    pydantic.ValidationError (a problem document as well) for what does not fit.
    """
    kind = media_type(request)
    if kind != "application/json":
        raise UnsupportedError(f"the body is {kind or 'of no type'!r:.100}; send application/json")
    body = bytearray()
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise CancelledError("the caller went away")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_JSON_BYTES:
            raise TooLargeError(f"the body may have at most {MAX_JSON_BYTES} bytes")
    return model.model_validate_json(bytes(body))


def media_type(request: Request) -> str:
    """The body's type without its parameters, in lower case; empty when there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def refuse_repeated(request: Request) -> None:
    """Raise UsageError where a parameter is given twice: nobody knows which is meant."""
    seen = set()
    for name, _ in request.query_params.multi_items():
        if name in seen:
            raise UsageError(f"parameter {name!r:.100} is given twice")
        seen.add(name)
