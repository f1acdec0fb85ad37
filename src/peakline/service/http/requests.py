"""What the routes share: the parts of their server, what a request says, how an answer is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from peakline.engine import Answer
from peakline.service.access import Access
from peakline.service.core import Analysis
from peakline.service.http.answers import answer_response
from peakline.service.http.middleware import note_request
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

    async def answered(
        self, request: Request, ask: Callable[[], Answer], *, always_gzip: bool = False
    ) -> Response:
        """The response with the `Answer` of ``ask``, which runs in a thread."""

        def work() -> Response:
            text = self.analysis.public_text
            return answer_response(request, ask(), text, always_gzip=always_gzip)

        return await self.work.answer(request, work)


def context_of(request: Request) -> Context:
    """The context of the app that answers ``request``."""
    context: Context = request.app.state.context
    return context


def accepted(request: Request, *, session: str = "", tool: str = "", host: str = "") -> Context:
    """The context of the app, for a request about these, which the log will name."""
    note_request(request, session=session, tool=tool, host=host)
    return context_of(request)
