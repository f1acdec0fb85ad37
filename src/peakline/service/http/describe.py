"""What the routes say of themselves in ``/openapi.json``, as OpenAPI 3.1 has it.

Every operation describes each answer that it can give, problem documents included, and nothing
else is ever sent (``tests/service/test_openapi.py`` asks for that).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from peakline import __version__
from peakline.service.http import documents
from peakline.service.http.documents import Body
from peakline.service.http.problems import MEDIA_TYPE, Problem
from peakline.toolbox.parameter_schema import properties_of, required_of

if TYPE_CHECKING:
    from peakline.service.http.routing import Operation
    from peakline.toolbox.parameters import Parameters

_REASONS: Mapping[int, str] = {
    400: "a name, a parameter or a body is none, or the request is refused for what it asks",
    401: "the token is missing or wrong",
    403: "outside what the server allows, or a change from a page of another site",
    404: "no such session, host, tool, or whatever else was named",
    409: "the session is there already",
    413: "the body is larger than the server takes",
    414: "the URL is longer than the server takes",
    415: "the type or the content of the body is none that the server takes",
    421: "the Host header is none of this server's names",
    422: "the profile is damaged",
    429: "too many requests at once; try again after Retry-After seconds",
    431: "the headers are longer than the server takes",
    500: "a fault of the server; the detail has the id of its entry in the log",
    503: "a remote host or a capture failed; or too many connections, with Retry-After",
    504: "the time for the answer is over",
}

_DESCRIPTION = """Sessions of profiles, and what their memory and their steps say.

Names never hold a separator. Errors are problem documents (RFC 9457). `HEAD` is answered wherever
`GET` is."""

_ALWAYS = (400, 401, 414, 421, 431, 500, 503)
READING = (*_ALWAYS, 403, 404, 422, 429, 504)
"""What any question about sessions may be answered with, besides success."""

ASKING = (*READING, 413, 415)
"""And one that has a body."""

DOING = (*ASKING, 409)
"""And one that makes a session."""

_REQUEST_ID = {
    "X-Request-Id": {
        "description": "the caller's own (`X-Request-Id` of the request) or a new one; the log "
        "has it",
        "schema": {"type": "string"},
    }
}
_MODELS: tuple[type[Struct], ...] = (
    Problem,
    *(
        model
        for model in vars(documents).values()
        if isinstance(model, type) and issubclass(model, Struct) and model not in {Struct, Body}
    ),
)
_COMPONENTS = "#/components/schemas/{name}"


def described(*statuses: int, **answers: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """The ``responses`` of a route: problem documents for ``statuses``, and ``answers``.

    An answer's name is its status behind an underscore, ``_200=json_answer(...)``.
    """
    responses: dict[int, dict[str, Any]] = {
        int(name.lstrip("_")): dict(answer) for name, answer in answers.items()
    }
    for status in sorted({*_ALWAYS, *statuses}):
        headers = dict(_REQUEST_ID)
        if status in {429, 503}:
            seconds = {"type": "integer", "minimum": 0}
            headers["Retry-After"] = {"description": "seconds", "schema": seconds}
        if status == 401:
            scheme = {"description": "`Bearer`", "schema": {"type": "string"}}
            headers["WWW-Authenticate"] = scheme
        responses[status] = {
            "description": _REASONS[status],
            "headers": headers,
            "content": {MEDIA_TYPE: {"schema": reference(Problem)}},
        }
    return responses


def json_answer(
    description: str,
    model: type[Struct],
    *,
    many: bool = False,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A successful answer: one document, or an array of them; ``headers`` by description."""
    schema = reference(model)
    if many:
        schema = {"type": "array", "items": schema}
    return answer(description, {"application/json": {"schema": schema}}, headers)


def answer(
    description: str, content: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A successful answer of any media types."""
    named = {
        name: {"description": text, "schema": {"type": "string"}}
        for name, text in (headers or {}).items()
    }
    described_answer = {"description": description, "headers": {**_REQUEST_ID, **named}}
    return {**described_answer, "content": dict(content)} if content else described_answer


def reference(model: type[Struct]) -> dict[str, Any]:
    """The schema of a document, which is described in one place."""
    return {"$ref": _COMPONENTS.format(name=model.__name__)}


def openapi_of(operations: Iterable[Operation]) -> dict[str, Any]:
    """The document: the operations by path, the documents they name, how to show a token."""
    from msgspec.json import schema_components

    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        here = paths.setdefault(operation.path_format, {})
        here[operation.method.lower()] = _operation(operation)
    _, schemas = schema_components(_MODELS, ref_template=_COMPONENTS)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Peakline", "description": _DESCRIPTION, "version": __version__},
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "required where the server was started with a token",
                }
            },
        },
        "security": [{}, {"token": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    method = operation.method.lower()
    result: dict[str, Any] = {
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.function.__doc__,
        "operationId": re.sub(r"\W", "_", f"{operation.name}{operation.path_format}_{method}"),
    }
    parameters = [
        *_parameters("path", operation.path_kind),
        *_parameters("query", operation.query_kind),
        *operation.extra_parameters,
    ]
    if parameters:
        result["parameters"] = parameters
    if operation.body_kind is not None:
        schema = {"schema": reference(operation.body_kind)}
        result["requestBody"] = {"required": True, "content": {"application/json": schema}}
    responses = {str(status): answer for status, answer in operation.responses.items()}
    return {**result, "responses": responses, **operation.extra}


def _parameters(place: str, kind: type[Parameters] | None) -> list[dict[str, Any]]:
    if kind is None:
        return []
    required = required_of(kind)
    return [
        {
            "name": name,
            "in": place,
            "required": name in required,
            "description": schema["description"],
            "schema": schema,
        }
        for name, schema in properties_of(kind).items()
    ]
