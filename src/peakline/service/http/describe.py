"""What the routes say of themselves in ``/openapi.json``, as the framework takes it.

Every operation describes each answer that it can give, problem documents included, and nothing
else is ever sent (``tests/service/test_openapi.py`` asks for that).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from peakline.service.http import documents
from peakline.service.http.problems import MEDIA_TYPE, Problem

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
_MODELS: tuple[type[BaseModel], ...] = (
    Problem,
    *(
        model
        for model in vars(documents).values()
        if isinstance(model, type) and issubclass(model, BaseModel) and model is not BaseModel
    ),
)
_COMPONENTS = "#/components/schemas/{model}"


def described(*statuses: int, **answers: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route: problem documents for ``statuses``, and ``answers``.

    An answer's name is its status behind an underscore, ``_200=json_answer(...)``.
    """
    responses: dict[int | str, dict[str, Any]] = {
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
    model: type[BaseModel],
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


def request_body(model: type[BaseModel]) -> dict[str, Any]:
    """``openapi_extra`` of a route that reads its JSON body itself."""
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": reference(model)}},
        }
    }


def reference(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a document, which is described in one place."""
    return {"$ref": _COMPONENTS.format(model=model.__name__)}


def openapi_of(app: Any) -> dict[str, Any]:
    """The document: what the framework found, with our models, and how to show a token."""
    from fastapi.openapi.utils import get_openapi

    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        openapi_version=app.openapi_version,
    )
    _, schemas = models_json_schema(
        [(model, "serialization") for model in _MODELS], ref_template=_COMPONENTS
    )
    document["components"] = {
        "schemas": dict(sorted(schemas["$defs"].items())),
        "securitySchemes": {
            "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "required where the server was started with a token",
            }
        },
    }
    document["security"] = [{}, {"token": []}]
    for path in document["paths"].values():
        for operation in path.values():
            # The framework's own document of a fault; what comes is a problem document, as 400.
            if MEDIA_TYPE not in operation["responses"].get("422", {}).get("content", {}):
                operation["responses"].pop("422", None)
    return document
