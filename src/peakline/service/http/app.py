"""The app: routes, guards, errors and the description of it all, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware import Middleware

from peakline import __version__
from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.core import Analysis
from peakline.service.deliveries import Deliveries
from peakline.service.http import (
    capture_routes,
    page_routes,
    problems,
    server_routes,
    session_routes,
    sql_routes,
    tool_routes,
    upload_routes,
    xprof_routes,
)
from peakline.service.http.describe import openapi_of
from peakline.service.http.middleware import Guard, Observe
from peakline.service.http.requests import Context
from peakline.service.http.work import Work
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings

_DESCRIPTION = """Sessions of profiles, and what their memory and their steps say.

Names never hold a separator. Errors are problem documents (RFC 9457). `HEAD` is answered wherever
`GET` is."""

_ROUTERS = (
    server_routes.router,
    session_routes.router,
    tool_routes.router,
    sql_routes.router,
    capture_routes.router,
    upload_routes.router,
    xprof_routes.router,
    page_routes.router,
)


def create_app(
    settings: Settings, analysis: Analysis, access: Access, log: AccessLog, metrics: Metrics
) -> FastAPI:
    """The ASGI app of one server; it holds no state but its threads, which end with it."""
    work = Work(settings, analysis, access)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        work.close()

    app = FastAPI(
        title="Peakline",
        version=__version__,
        description=_DESCRIPTION,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        middleware=[
            Middleware(
                Observe, access=access, log=log, metrics=metrics, deliveries=Deliveries(settings)
            ),
            Middleware(Guard, access=access, metrics=metrics),
        ],
    )
    app.state.context = Context(settings, analysis, access, metrics, work)
    problems.install(app, analysis.public_text, metrics)
    for router in _ROUTERS:
        app.include_router(router)
    document = openapi_of(app)
    metrics.know(
        "http",
        (
            f"{method} {path}"
            for path, operations in document["paths"].items()
            for operation in operations
            for method in (("GET", "HEAD") if operation == "get" else (operation.upper(),))
        ),
    )
    app.openapi = lambda: document  # type: ignore[method-assign]
    return app
