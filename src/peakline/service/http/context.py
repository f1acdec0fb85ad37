"""What the routes of one app share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from peakline.service.access import Access
from peakline.service.core import Analysis
from peakline.service.http.work import Work
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings


@dataclass(frozen=True)
class Context:
    """The parts of the server that an endpoint needs."""

    settings: Settings
    analysis: Analysis
    access: Access
    metrics: Metrics
    work: Work


def context_of(request: Request) -> Context:
    """The context of the app that answers ``request``."""
    return cast("Context", request.app.state.context)
