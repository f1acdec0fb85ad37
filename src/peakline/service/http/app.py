"""The app: routes, guards, errors and the description of it all, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial

from starlette.applications import Starlette
from starlette.middleware import Middleware

from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.core import Analysis
from peakline.service.deliveries import Deliveries
from peakline.service.http import (
    capture_routes,
    page_routes,
    problems,
    session_routes,
    tool_routes,
    xprof_routes,
)
from peakline.service.http.describe import openapi_of
from peakline.service.http.middleware import Guard, Observe
from peakline.service.http.requests import Context
from peakline.service.http.work import Work
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings

_ROUTES = (
    session_routes.server_routes,
    session_routes.routes,
    tool_routes.routes,
    tool_routes.sql_routes,
    capture_routes.routes,
    capture_routes.upload_routes,
    xprof_routes.routes,
    page_routes.routes,
)


def create_app(
    settings: Settings, analysis: Analysis, access: Access, log: AccessLog, metrics: Metrics
) -> Starlette:
    """The ASGI app of one server; it holds no state but its threads, which end with it."""
    work = Work(settings, analysis, access)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        work.close()

    operations = [operation for routes in _ROUTES for operation in routes.operations]
    app = Starlette(
        routes=operations,
        lifespan=lifespan,
        middleware=[
            Middleware(
                Observe, access=access, log=log, metrics=metrics, deliveries=Deliveries(settings)
            ),
            Middleware(Guard, access=access, metrics=metrics),
        ],
        exception_handlers=problems.handlers(analysis.public_text, metrics),
    )
    app.router.redirect_slashes = False
    app.state.context = Context(settings, analysis, access, metrics, work)
    app.state.openapi = cache(partial(openapi_of, operations))
    metrics.know(
        "http",
        (
            f"{method} {operation.path_format}"
            for operation in operations
            for method in sorted(operation.methods or ())
        ),
    )
    return app
