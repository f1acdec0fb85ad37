"""The route of SQL: one reading statement over the tables of one host."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from peakline.process_memory import give_back_memory
from peakline.service.http.answers import MEDIA_TYPES, data_response
from peakline.service.http.bodies import json_body, refuse_repeated
from peakline.service.http.context import context_of
from peakline.service.http.describe import ASKING, answer, described, request_body
from peakline.service.http.documents import SqlBody
from peakline.service.http.observe import note_request
from peakline.service.http.parameters import RootQuery, SessionPath
from peakline.service.http.rows import FORMATS, written

router = APIRouter(prefix="/api", tags=["sql"])

_LARGE = 64 << 20
"""Bytes of an answer after which memory is returned to the system."""

_HEADERS = {"Peakline-Rows": "how many rows the query has, those left out by max_rows too"}
_ROWS = {
    "application/json": {
        "schema": {"type": "array", "items": {"type": "object"}},
        "example": [{"op": "conv1", "bytes": 4096}],
    },
    **{MEDIA_TYPES[kind].partition(";")[0]: {} for kind in FORMATS if kind != "json"},
}


@router.post(
    "/sessions/{session_id}/sql",
    summary="A query over the tables of one host's profile",
    responses=described(*ASKING, _200=answer("the rows, in the format asked for", _ROWS, _HEADERS)),
    openapi_extra=request_body(SqlBody),
)
async def sql(request: Request, session_id: SessionPath, query: RootQuery) -> Response:
    """Rows. A statement that does not only read the tables is refused with its reason."""
    context = context_of(request)
    refuse_repeated(request)
    asked = await json_body(request, SqlBody)
    note_request(request, session=session_id, host=asked.host)

    def work() -> Response:
        table = context.analysis.sql(query.root, session_id, asked.host, asked.query)
        content = written(
            table if asked.max_rows is None else table.slice(0, asked.max_rows),
            asked.format,
            context.settings.sql_memory_bytes,
            large_as_text=asked.large_integers == "string",
        )
        headers = {"Peakline-Rows": str(table.num_rows)}
        if table.nbytes > _LARGE:
            del table
            give_back_memory()
        return data_response(request, content, asked.format, headers, cached=False)

    return await context.work.answer(request, work)
