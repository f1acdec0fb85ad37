"""The route of SQL: one reading statement over the tables of one host, up to a size."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from peakline.errors import CheckFailed
from peakline.process_memory import give_back_memory
from peakline.service.http.answers import MEDIA_TYPES, data_response
from peakline.service.http.describe import ASKING, answer, described, request_body
from peakline.service.http.documents import SqlBody
from peakline.service.http.middleware import note_request
from peakline.service.http.parameters import RootQuery, SessionPath
from peakline.service.http.requests import accepted, json_body
from peakline.tables.rows import write_csv, write_json

if TYPE_CHECKING:
    import pyarrow as pa


router = APIRouter(prefix="/api", tags=["sql"])

_LARGE = 64 << 20
"""Bytes of an answer after which memory is returned to the system."""

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


def written(table: pa.Table, kind: str, max_bytes: int, *, large_as_text: bool = False) -> bytes:
    """``table`` in the format ``kind``.

    Raises CheckFailed when that has more than ``max_bytes``, DeadlineError or CancelledError.
    """
    out = _Bounded(max_bytes)
    if kind == "csv":
        write_csv(table, out)
    elif kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, out)
    else:
        write_json(table, out, large_as_text=large_as_text)
    return out.getvalue()


class _Bounded(io.BytesIO):
    """A file in memory that refuses to grow beyond a size."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes

    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > self._max_bytes:
            raise CheckFailed(
                f"the answer has more than {self._max_bytes} bytes; ask for fewer rows (LIMIT) "
                "or columns"
            )
        return super().write(data)
