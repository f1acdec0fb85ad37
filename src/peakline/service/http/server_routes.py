"""Routes about the server itself: whether it answers, and its numbers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from peakline import __version__
from peakline.service.http.answers import json_response
from peakline.service.http.describe import answer, described, json_answer
from peakline.service.http.documents import HealthDocument, ServerDocument
from peakline.service.http.parameters import NoQuery
from peakline.service.http.requests import accepted, context_of
from peakline.service.http.routing import Routes
from peakline.service.metrics import CONTENT_TYPE

routes = Routes("server")


@routes.get(
    "/healthz",
    summary="Whether the server answers; open to everybody",
    responses=described(_200=json_answer("it does", HealthDocument)),
    extra={"security": []},
)
async def health(_request: Request) -> Response:
    """Answer."""
    return Response('{"status": "ok"}', media_type="application/json")


@routes.get(
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


@routes.get(
    "/openapi.json",
    summary="This document",
    responses=described(
        _200=answer("OpenAPI 3.1", {"application/json": {"schema": {"type": "object"}}})
    ),
)
async def openapi(request: Request) -> Response:
    """What this server can be sent, and what it answers."""
    return json_response(request, request.app.state.openapi())


@routes.get(
    "/metrics",
    summary="The server's numbers, for Prometheus",
    responses=described(
        _200=answer("Prometheus' text format", {"text/plain": {"schema": {"type": "string"}}})
    ),
)
async def metrics(request: Request) -> Response:
    """Counters and gauges."""
    return Response(context_of(request).metrics.render(), headers={"Content-Type": CONTENT_TYPE})
