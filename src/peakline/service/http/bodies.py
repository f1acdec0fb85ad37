"""A request's body as a document: JSON of a bounded size."""

from __future__ import annotations

import re
from typing import TypeVar, get_args, get_type_hints

import msgspec
from starlette.requests import Request

from peakline.errors import CancelledError, UsageError
from peakline.service.http.documents import Body
from peakline.service.http.problems import TooLargeError, UnsupportedError

MAX_JSON_BYTES = 1 << 20
"""A query or the options of a capture have no use for more."""

_B = TypeVar("_B", bound=Body)
_PLACE = re.compile(r"(?P<message>.*) - at `\$\.(?P<field>.*)`")
_FIELD = re.compile(r"Object (?P<fault>contains unknown|missing required) field `(?P<field>.*)`")
_TYPES = {"int": "integer", "str": "string", "bool": "boolean", "float": "number"}


async def json_body(request: Request, kind: type[_B]) -> _B:
    """The body as ``kind``.

    Raises UnsupportedError for another media type, TooLargeError beyond `MAX_JSON_BYTES`,
    UsageError for what does not fit, CancelledError where the caller goes away.
    """
    result = media_type(request)
    if result != "application/json":
        raise UnsupportedError(
            f"the body is {result or 'of no type'!r:.100}; send application/json"
        )
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
    try:
        return msgspec.json.decode(bytes(body), type=kind, strict=not kind.texts_are_numbers)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(_complaint(error, kind)) from None


def media_type(request: Request) -> str:
    """The body's type without its parameters, in lower case; empty when there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _complaint(error: Exception, kind: type[Body]) -> str:
    """What msgspec found, in one line and in JSON's terms."""
    if isinstance(error, UnicodeDecodeError):
        return "the body is not UTF-8"
    if isinstance(error, RecursionError):
        return "the body is nested too deeply"
    text = str(error)
    if match := _FIELD.fullmatch(text):
        is_missing = match["fault"].startswith("missing")
        fault = "is missing" if is_missing else "is none that this takes"
        return f"body field {match['field']!r:.100} {fault}"
    match = _PLACE.fullmatch(text)
    if match is None:
        return f"the body: {text if text.startswith('JSON') else _in_json(text)}"
    field = match["field"]
    if match["message"].startswith("Invalid enum value"):
        choices = ", ".join(map(repr, get_args(get_type_hints(kind)[field])))
        return f"body field {field!r} must be one of {choices}"
    return f"body field {field!r:.100}: {_in_json(match['message'])}"


def _in_json(message: str) -> str:
    """A message of msgspec's with JSON's names of the types."""
    for python, json in _TYPES.items():
        message = re.sub(rf"\b{python}\b", json, message)
    return f"{message[:1].lower()}{message[1:]}".replace("`", "").replace(" | ", " or ")
