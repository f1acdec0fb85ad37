"""The routes of answers about profiles: of a tool, a comparison, SQL, a figure; all figures."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from peakline.engine import Answer
from peakline.figures.named import FigureQuestion, figure_kind, figure_names
from peakline.service.http.answers import MEDIA_TYPES, data_response, notes_header
from peakline.service.http.describe import (
    ASKING,
    READING,
    answer,
    described,
    json_answer,
    reference,
)
from peakline.service.http.documents import FigureDocument, FigureKindDocument, SqlBody
from peakline.service.http.parameters import (
    OPTIONAL_NAME,
    ROOT,
    ROOT_MEANING,
    CompareQuery,
    FigurePath,
    FigureQuery,
    NoQuery,
    RootQuery,
    SessionPath,
    ToolPath,
)
from peakline.service.http.requests import accepted
from peakline.service.http.routing import Routes, refuse_repeated
from peakline.tables.sql_process.answer import Form

sql_routes = Routes("sql", "/api")

_HEADERS = {
    "Peakline-Rows": "how many rows the query has, those left out by max_rows too",
    "Peakline-Notes": "ranks that could not be read, or have no rows of a table: a JSON array of "
    "lines",
}
_ROWS = {
    "application/json": {
        "schema": {"type": "array", "items": {"type": "object"}},
        "example": [{"op": "conv1", "bytes": 4096}],
    },
    **{MEDIA_TYPES[kind].partition(";")[0]: {} for kind in ("csv", "parquet")},
}


@sql_routes.post(
    "/sessions/{session_id}/sql",
    summary="A query over the tables of one host's profile, or those of all ranks",
    responses=described(*ASKING, _200=answer("the rows, in the requested format", _ROWS, _HEADERS)),
)
async def sql(request: Request, path: SessionPath, query: RootQuery, body: SqlBody) -> Response:
    """Rows. A statement that does not only read the tables is refused with its reason. Without a
    host, where there are several, every table has the column `rank` and there is a table `ranks`.
    """
    context = accepted(request, session=path.session_id, host=body.host)
    form = Form(body.format, body.max_rows, body.large_integers == "string", body.safe_csv)

    def work() -> Response:
        rows = context.analysis.sql(
            query.root, path.session_id, body.host, body.query, form, body.parameters
        )
        headers = {"Peakline-Rows": str(rows.rows)}
        headers |= notes_header(map(context.analysis.public_text, rows.notes))
        return data_response(request, rows.content, body.format, headers, cached=False)

    return await context.work.answer(request, work)


routes = Routes("tools", "/api")

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
        "and unknown ones are listed in Peakline-Notes",
        "schema": {"type": "object", "additionalProperties": {"type": "string"}},
        "examples": {"none": {"value": {}}},
    },
]


@routes.get(
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
    extra_parameters=_PARAMETERS,
)
async def tool_data(request: Request, path: ToolPath) -> Response:
    """One tool's answer for one host, or for all of them."""
    given = dict(request.query_params)
    root, host = given.pop("root", ""), given.pop("host", "")
    refuse_repeated(request)
    context = accepted(request, session=path.session_id, tool=path.tool, host=host)

    return await context.answered(
        request, lambda: context.analysis.tool_data(root, path.session_id, host, path.tool, given)
    )


_COMPARISONS = {
    "application/json": {"schema": {"type": "object"}},
    MEDIA_TYPES["markdown"].partition(";")[0]: {},
}
_COMPARED = ANSWER_HEADERS | {"Peakline-Notes": "hosts that are not served: a JSON array of lines"}


@routes.get(
    "/compare",
    tag="sessions",
    summary="What changed from one session to another",
    responses=described(
        *READING,
        _200=answer("what `peakline diff` prints in that format", _COMPARISONS, _COMPARED),
        _304=NOT_MODIFIED,
    ),
)
async def compare(request: Request, query: CompareQuery) -> Response:
    """Peaks and what makes them, step times and where they go, ops, findings; docs/diff.md."""
    context = accepted(request, session=query.first, host=query.first_host)
    first, second = (query.first, query.first_host), (query.second, query.second_host)
    return await context.answered(
        request, lambda: context.analysis.compare(query.root, first, second, format=query.format)
    )


@routes.get(
    "/figures",
    tag="figures",
    summary="The figures of this server",
    responses=described(*READING, _200=json_answer("by name", FigureKindDocument, many=True)),
)
async def list_figures(request: Request, _query: NoQuery) -> Response:
    """Names and parameters; docs/figures.md says what each shows."""

    def work() -> list[dict[str, object]]:
        return [
            {
                "name": kind.name,
                "doc": kind.doc,
                "parameters": {"type": "object", "properties": dict(kind.parameters)},
            }
            for kind in map(figure_kind, figure_names())
        ]

    return await accepted(request).work.json(request, work)


@routes.get(
    "/sessions/{session_id}/figures/{figure}",
    tag="figures",
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
async def draw_figure(request: Request, path: FigurePath, query: FigureQuery) -> Response:
    """The figure that notebooks and the report show. Names in it are escaped for Plotly."""
    context = accepted(request, session=path.session_id, tool=path.figure, host=query.host)

    def draw() -> Answer:
        chosen = FigureQuestion(path.figure, query.allocator, query.device, query.side, query.theme)
        return context.analysis.figure(query.root, path.session_id, query.host, chosen)

    return await context.answered(request, draw)
