"""The route of SQL: one reading statement over the tables of one host, up to a size."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from peakline.service.http.answers import MEDIA_TYPES, data_response
from peakline.service.http.describe import ASKING, answer, described, request_body
from peakline.service.http.documents import SqlBody
from peakline.service.http.middleware import note_request
from peakline.service.http.parameters import RootQuery, SessionPath
from peakline.service.http.requests import accepted, json_body
from peakline.tables.sql_process.answer import Form

router = APIRouter(prefix="/api", tags=["sql"])

_HEADERS = {"Peakline-Rows": "how many rows the query has, those left out by max_rows too"}
_ROWS = {
    "application/json": {
        "schema": {"type": "array", "items": {"type": "object"}},
        "example": [{"op": "conv1", "bytes": 4096}],
    },
    **{MEDIA_TYPES[kind].partition(";")[0]: {} for kind in ("csv", "parquet")},
}


@router.post(
    "/sessions/{session_id}/sql",
    summary="A query over the tables of one host's profile",
    responses=described(*ASKING, _200=answer("the rows, in the requested format", _ROWS, _HEADERS)),
    openapi_extra=request_body(SqlBody),
)
async def sql(request: Request, session_id: SessionPath, query: RootQuery) -> Response:
    """Rows. A statement that does not only read the tables is refused with its reason."""
    context = accepted(request)
    asked = await json_body(request, SqlBody)
    note_request(request, session=session_id, host=asked.host)

    form = Form(asked.format, asked.max_rows, asked.large_integers == "string")

    def work() -> Response:
        rows = context.analysis.sql(
            query.root, session_id, asked.host, asked.query, form, asked.parameters
        )
        headers = {"Peakline-Rows": str(rows.rows)}
        return data_response(request, rows.content, asked.format, headers, cached=False)

    return await context.work.answer(request, work)
