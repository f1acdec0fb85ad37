"""The route of SQL: one reading statement over the tables of one host, up to a size."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from peakline.service.http.answers import MEDIA_TYPES, data_response
from peakline.service.http.describe import ASKING, answer, described
from peakline.service.http.documents import SqlBody
from peakline.service.http.parameters import RootQuery, SessionPath
from peakline.service.http.requests import accepted
from peakline.service.http.routing import Routes
from peakline.tables.sql_process.answer import Form

routes = Routes("sql", "/api")

_HEADERS = {"Peakline-Rows": "how many rows the query has, those left out by max_rows too"}
_ROWS = {
    "application/json": {
        "schema": {"type": "array", "items": {"type": "object"}},
        "example": [{"op": "conv1", "bytes": 4096}],
    },
    **{MEDIA_TYPES[kind].partition(";")[0]: {} for kind in ("csv", "parquet")},
}


@routes.post(
    "/sessions/{session_id}/sql",
    summary="A query over the tables of one host's profile",
    responses=described(*ASKING, _200=answer("the rows, in the requested format", _ROWS, _HEADERS)),
)
async def sql(request: Request, path: SessionPath, query: RootQuery, body: SqlBody) -> Response:
    """Rows. A statement that does not only read the tables is refused with its reason."""
    context = accepted(request, session=path.session_id, host=body.host)
    form = Form(body.format, body.max_rows, body.large_integers == "string")

    def work() -> Response:
        rows = context.analysis.sql(
            query.root, path.session_id, body.host, body.query, form, body.parameters
        )
        headers = {"Peakline-Rows": str(rows.rows)}
        return data_response(request, rows.content, body.format, headers, cached=False)

    return await context.work.answer(request, work)
