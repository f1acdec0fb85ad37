"""Routes about the server itself: whether it answers, and its numbers."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from peakline.service.http.answers import json_response
from peakline.service.http.context import context_of
from peakline.service.http.describe import answer, described, json_answer
from peakline.service.http.documents import HealthDocument
from peakline.service.metrics import CONTENT_TYPE

__all__ = ["router"]

router = APIRouter(tags=["server"])


@router.get(
    "/healthz",
    summary="Whether the server answers; open to everybody",
    responses=described(_200=json_answer("it does", HealthDocument)),
    openapi_extra={"security": []},
)
async def health() -> Response:
    """Answer."""
    return Response('{"status": "ok"}', media_type="application/json")


@router.get(
    "/openapi.json",
    summary="This document",
    responses=described(
        _200=answer("OpenAPI 3.1", {"application/json": {"schema": {"type": "object"}}})
    ),
)
async def openapi(request: Request) -> Response:
    """What this server is asked, and what it answers."""
    return json_response(request, request.app.openapi())


@router.get(
    "/metrics",
    summary="The server's numbers, for Prometheus",
    responses=described(
        _200=answer("Prometheus' text format", {"text/plain": {"schema": {"type": "string"}}})
    ),
)
async def metrics(request: Request) -> Response:
    """Counters and gauges."""
    return Response(context_of(request).metrics.render(), headers={"Content-Type": CONTENT_TYPE})
