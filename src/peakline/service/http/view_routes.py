"""The route that lists the views that queries may name beside tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from peakline.service.http.answers import json_response
from peakline.service.http.bodies import refuse_repeated
from peakline.service.http.context import context_of
from peakline.service.http.describe import READING, described, json_answer
from peakline.service.http.documents import ViewDocument
from peakline.service.http.parameters import NoQuery

if TYPE_CHECKING:
    from peakline.tables.definition import TableDef

router = APIRouter(prefix="/api", tags=["sessions"])


def table_document(table: TableDef) -> dict[str, Any]:
    """Name, meaning and columns of a table or a view."""
    return {
        "name": table.name,
        "doc": table.doc,
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "unit": column.unit,
                "nullable": column.nullable,
                "doc": column.doc,
            }
            for column in table.columns
        ],
    }


@router.get(
    "/views",
    summary="The views that queries may name beside the tables, with their columns",
    responses=described(*READING, _200=json_answer("by name", ViewDocument, many=True)),
)
async def list_views(request: Request, _query: NoQuery) -> Response:
    """Every view there is; a profile has those of whose tables it lacks none."""

    def work() -> Response:
        from peakline.tables.sql_views import view, view_names

        found = [view(name) for name in sorted(view_names())]
        documents = [
            {**table_document(each), "units": each.units, "tables": sorted(each.needs)}
            for each in found
        ]
        return json_response(request, documents)

    refuse_repeated(request)
    return await context_of(request).work.answer(request, work)
