"""The route of the tools: a question, and bytes in the format that was asked for."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from peakline.service.http.answers import MEDIA_TYPES, answer_response
from peakline.service.http.bodies import refuse_repeated
from peakline.service.http.context import context_of
from peakline.service.http.describe import READING, answer, described
from peakline.service.http.observe import note_request
from peakline.service.http.parameters import (
    OPTIONAL_NAME,
    ROOT,
    ROOT_MEANING,
    SessionPath,
    ToolPath,
)

router = APIRouter(prefix="/api", tags=["tools"])

ANSWER_HEADERS = {
    "ETag": "of the content; send it back as If-None-Match",
    "Peakline-Warnings": "what was lost, skipped or guessed while reading: a JSON array of "
    "{kind, count, detail}",
    "Peakline-Notes": "hosts that could not be read, parameters that were ignored: a JSON array "
    "of lines",
}
TOOL_CONTENT: dict[str, dict[str, Any]] = {
    kind.partition(";")[0]: {} for kind in dict.fromkeys(MEDIA_TYPES.values())
}
NOT_MODIFIED = {
    "description": "If-None-Match has the ETag of what would be sent",
    "headers": {"ETag": {"description": "of the content", "schema": {"type": "string"}}},
}


def _parameter(name: str, description: str, example: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": {"type": "string", **schema},
        "examples": {"usual": {"value": example}},
    }


_PARAMETERS: list[dict[str, Any]] = [
    _parameter("root", ROOT_MEANING, "", ROOT),
    _parameter(
        "host", "a host; left out: the only one, or all where the tool can", "", OPTIONAL_NAME
    ),
    _parameter("format", "one of the tool's formats; by default its first", "json", {}),
    {
        "name": "parameters",
        "in": "query",
        "required": False,
        "style": "form",
        "explode": True,
        "description": "the tool's own parameters, each by its name; GET /api/tools lists them, "
        "and unknown ones are told in Peakline-Notes",
        "schema": {"type": "object", "additionalProperties": {"type": "string"}},
        "examples": {"none": {"value": {}}},
    },
]


@router.get(
    "/sessions/{session_id}/tools/{tool}",
    summary="What a tool shows of a session",
    responses=described(
        *READING,
        _200=answer(
            "exactly the bytes of GetSessionToolData and of `peakline tool`",
            TOOL_CONTENT,
            ANSWER_HEADERS,
        ),
        _304=NOT_MODIFIED,
    ),
    openapi_extra={"parameters": _PARAMETERS},
)
async def tool_data(request: Request, session_id: SessionPath, tool: ToolPath) -> Response:
    """One tool's answer for one host, or for all of them."""
    context = context_of(request)
    refuse_repeated(request)
    given = dict(request.query_params)
    root, host = given.pop("root", ""), given.pop("host", "")
    note_request(request, session=session_id, tool=tool, host=host)

    def work() -> Response:
        found = context.analysis.tool_data(root, session_id, host, tool, given)
        return answer_response(request, found, context.analysis.public_text)

    return await context.work.answer(request, work)
