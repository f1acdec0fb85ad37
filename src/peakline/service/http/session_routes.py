"""Routes that list: sessions, their hosts, tools and tables; all tools, tables and views.

Routes about the server itself are here too: whether it answers, and its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from peakline import __version__
from peakline.errors import InputError, NotFoundError, UnforeseenError, faults_of
from peakline.repository import HostFile, extent_of
from peakline.service.http.answers import json_response, notes_header
from peakline.service.http.describe import READING, answer, described, json_answer
from peakline.service.http.documents import (
    ColumnDocument,
    HealthDocument,
    ServerDocument,
    SessionDocument,
    TableDocument,
    ToolDocument,
    ViewDocument,
)
from peakline.service.http.parameters import HostQuery, ListQuery, NoQuery, RootQuery, SessionPath
from peakline.service.http.requests import Context, accepted, context_of
from peakline.service.http.routing import Routes
from peakline.service.metrics import CONTENT_TYPE
from peakline.service.session_pages import PageWanted
from peakline.tables import TABLES
from peakline.tables.sql_views import view, view_names
from peakline.tools import find_tool, tool_names

if TYPE_CHECKING:
    from peakline.tables.definition import TableDef


server_routes = Routes("server")


@server_routes.get(
    "/healthz",
    summary="Whether the server answers; open to everybody",
    responses=described(_200=json_answer("it does", HealthDocument)),
    extra={"security": []},
)
async def health(_request: Request) -> Response:
    """Answer."""
    return Response('{"status": "ok"}', media_type="application/json")


@server_routes.get(
    "/api/server",
    summary="The server's log directories, and what it allows",
    responses=described(_200=json_answer("as it was started", ServerDocument)),
)
async def server(request: Request, _query: NoQuery) -> Response:
    """What a page has to know before it asks for more."""
    context = accepted(request)
    settings = context.settings
    return json_response(
        request,
        {
            "version": __version__,
            "roots": list(context.access.roots),
            "read_only": settings.read_only,
            "max_upload_bytes": settings.max_upload_bytes,
            "max_capture_s": settings.max_capture_s,
            "profiler_port": settings.profiler_port,
            "workers": sorted(settings.workers),
            "source": settings.source,
            "source_is_logdir": settings.source in settings.roots,
        },
    )


@server_routes.get(
    "/openapi.json",
    summary="This document",
    responses=described(
        _200=answer("OpenAPI 3.1", {"application/json": {"schema": {"type": "object"}}})
    ),
)
async def openapi(request: Request) -> Response:
    """What this server can be sent, and what it answers."""
    return json_response(request, request.app.state.openapi())


@server_routes.get(
    "/metrics",
    summary="The server's numbers, for Prometheus",
    responses=described(
        _200=answer("Prometheus' text format", {"text/plain": {"schema": {"type": "string"}}})
    ),
)
async def metrics(request: Request) -> Response:
    """Counters and gauges."""
    return Response(context_of(request).metrics.render(), headers={"Content-Type": CONTENT_TYPE})


routes = Routes("sessions", "/api")

_COUNTS = {
    "Peakline-Rows": "how many sessions match, those of other pages too",
    "Peakline-Sessions": "how many sessions there are",
}
NOTES = {"Peakline-Notes": "what could not be read or was not looked at: a JSON array of lines"}


@routes.get(
    "/tools",
    summary="The tools of this server",
    responses=described(*READING, _200=json_answer("by name", ToolDocument, many=True)),
)
async def list_tools(request: Request, _query: NoQuery) -> Response:
    """Names, formats and parameters."""

    def work() -> list[dict[str, Any]]:
        return [
            {
                "name": tool.name,
                "doc": tool.doc,
                "formats": list(tool.formats),
                "parameters": tool.schema(),
            }
            for tool in map(find_tool, tool_names())
        ]

    return await accepted(request).work.json(request, work)


@routes.get(
    "/tables",
    summary="The tables that queries may ask for, with their columns",
    responses=described(*READING, _200=json_answer("as documented", TableDocument, many=True)),
)
async def list_all_tables(request: Request, _query: NoQuery) -> Response:
    """Every table there is; `GET /api/sessions/ID/tables` says which of them a profile has."""

    def work() -> list[dict[str, Any]]:
        return [table_document(table) for table in TABLES.values()]

    return await accepted(request).work.json(request, work)


@routes.get(
    "/sessions",
    summary="The sessions of a log directory",
    responses=described(
        *READING,
        _200=json_answer("newest first", SessionDocument, many=True, headers=NOTES | _COUNTS),
    ),
)
async def list_sessions(request: Request, query: ListQuery) -> Response:
    """Sessions, newest first, with their hosts and tools, their size and age; a page of them."""
    context = accepted(request)
    wanted = PageWanted(query.offset, query.limit, query.search, query.sort, query.tools)

    def work() -> Response:
        listing = context.analysis.listing(query.root, wanted)
        sessions, notes = [], list(listing.notes)
        for session, tools in listing.sessions:
            try:
                with faults_of(session.path):
                    files = context.access.host_files(session)
                    document = document_of(session.session_id, files, tools)
            except NotFoundError:
                continue  # removed since it was listed
            except (InputError, UnforeseenError) as error:
                document = document_of(session.session_id, [], tools)
                note = f"session {session.session_id}: {context.analysis.public_text(error)}"
                notes += [] if note in notes else [note]
            sessions.append(document)
        headers = {
            "Peakline-Rows": str(listing.matching),
            "Peakline-Sessions": str(listing.all),
            **notes_header(notes),
        }
        return json_response(request, sessions, headers=headers)

    return await context.work.answer(request, work, gate=context.analysis.lists)


@routes.get(
    "/sessions/{session_id}",
    summary="One session: its hosts and tools",
    responses=described(*READING, _200=json_answer("the session", SessionDocument, headers=NOTES)),
)
async def show_session(request: Request, path: SessionPath, query: RootQuery) -> Response:
    """One entry of the list of sessions, with the reason where it has no tools for one."""
    context = accepted(request, session=path.session_id)

    def work() -> Response:
        session = context.access.run(query.root, path.session_id)
        hosts = context.access.host_files(session)
        tools, problem = context.analysis.tools_and_problem(query.root, path.session_id)
        notes = [f"session {path.session_id}: {problem}"] if problem else []
        document = document_of(session.session_id, hosts, tools)
        return json_response(request, document, headers=notes_header(notes))

    return await context.work.answer(request, work)


@routes.get(
    "/sessions/{session_id}/tables",
    summary="The tables that a query may ask for",
    responses=described(
        *READING,
        _200=answer(
            "their names",
            {
                "application/json": {
                    "schema": {"type": "array", "items": {"type": "string"}},
                    "example": ["allocator_events", "buffers", "events"],
                }
            },
        ),
    ),
)
async def list_tables(request: Request, path: SessionPath, query: HostQuery) -> Response:
    """Names of tables; docs/tables.md says what is in them."""
    context = accepted(request, session=path.session_id, host=query.host)
    return await context.work.json(
        request, lambda: context.analysis.tables(query.root, path.session_id, query.host)
    )


def session_document(context: Context, root: str, session_id: str) -> dict[str, Any]:
    """The document of one session; raises as `Access.run` does."""
    session = context.access.run(root, session_id)
    hosts = context.access.host_files(session)
    return document_of(session.session_id, hosts, context.analysis.tools(root, session_id))


def location_of(root: str, session_id: str) -> str:
    """Where the document of a session is."""
    query = f"?{urlencode({'root': root})}" if root else ""
    return f"/api/sessions/{quote(session_id, safe='')}{query}"


def document_of(
    session_id: str, files: Sequence[HostFile], tools: Iterable[str] | None
) -> dict[str, Any]:
    """The document of a session with these files and tools; None: nobody looked for them."""
    return {
        "session_id": session_id,
        "hosts": [file.host for file in files],
        "tools": None if tools is None else list(tools),
        **extent_of(files).as_json(),
    }


def table_document(table: TableDef) -> dict[str, Any]:
    """Name, meaning and columns of a table or a view."""
    return {
        "name": table.name,
        "doc": table.doc,
        "columns": [
            {name: getattr(column, name) for name in ColumnDocument.__struct_fields__}
            for column in table.columns
        ],
    }


@routes.get(
    "/views",
    summary="The views that queries may name beside the tables, with their columns",
    responses=described(*READING, _200=json_answer("by name", ViewDocument, many=True)),
)
async def list_views(request: Request, _query: NoQuery) -> Response:
    """Every view there is; a profile has those of whose tables it lacks none."""

    def work() -> list[dict[str, Any]]:
        return [
            {**table_document(each), "units": each.units, "tables": sorted(each.needs)}
            for each in map(view, sorted(view_names()))
        ]

    return await accepted(request).work.json(request, work)
