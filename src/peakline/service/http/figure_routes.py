"""The routes of figures: which there are, and one of a profile as Plotly's JSON."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from peakline.service.http.answers import answer_response
from peakline.service.http.bodies import refuse_repeated
from peakline.service.http.context import context_of
from peakline.service.http.describe import READING, answer, described, json_answer, reference
from peakline.service.http.documents import FigureDocument, FigureKindDocument
from peakline.service.http.observe import note_request
from peakline.service.http.parameters import FigurePath, FigureQuery, NoQuery, SessionPath
from peakline.service.http.tool_routes import ANSWER_HEADERS, NOT_MODIFIED

router = APIRouter(prefix="/api", tags=["figures"])


@router.get(
    "/figures",
    summary="The figures of this server",
    responses=described(*READING, _200=json_answer("by name", FigureKindDocument, many=True)),
)
async def list_figures(request: Request, _query: NoQuery) -> Response:
    """Names and parameters; docs/figures.md tells what each shows."""

    def work() -> list[dict[str, object]]:
        from peakline.figures.named import figure_kind, figure_names

        return [
            {
                "name": kind.name,
                "doc": kind.doc,
                "parameters": {"type": "object", "properties": dict(kind.parameters)},
            }
            for kind in map(figure_kind, figure_names())
        ]

    refuse_repeated(request)
    return await context_of(request).work.json(request, work)


@router.get(
    "/sessions/{session_id}/figures/{figure}",
    summary="A figure of one host's profile",
    responses=described(
        *READING,
        _200=answer(
            "Plotly's JSON; `null` where the profile has nothing to show in it",
            {
                "application/json": {
                    "schema": {"anyOf": [reference(FigureDocument), {"type": "null"}]}
                }
            },
            ANSWER_HEADERS,
        ),
        _304=NOT_MODIFIED,
    ),
)
async def draw_figure(
    request: Request, session_id: SessionPath, figure: FigurePath, query: FigureQuery
) -> Response:
    """The figure that notebooks and the report show. Names in it are escaped for Plotly."""
    context = context_of(request)
    refuse_repeated(request)
    note_request(request, session=session_id, tool=figure, host=query.host)

    def work() -> Response:
        from peakline.figures.named import FigureQuestion

        asked = FigureQuestion(figure, query.allocator, query.device, query.side, query.theme)
        found = context.analysis.figure(query.root, session_id, query.host, asked)
        return answer_response(request, found, context.analysis.public_text)

    return await context.work.answer(request, work)
