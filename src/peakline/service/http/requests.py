"""What the routes share: the parts of their server, what a request says, how an answer is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from peakline.engine import Answer
from peakline.errors import CancelledError, UsageError
from peakline.service.access import Access
from peakline.service.core import Analysis
from peakline.service.http.answers import answer_response
from peakline.service.http.middleware import note_request
from peakline.service.http.problems import TooLargeError, UnsupportedError
from peakline.service.http.work import Work
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings

MAX_JSON_BYTES = 1 << 20
"""A query or the options of a capture have no use for more."""

_M = TypeVar("_M", bound=BaseModel)


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
    """The context of the app, for a request about these, which the log will name.

    Raises UsageError where a parameter is given twice: nobody knows which is meant.
    """
    seen = set()
    for name, _ in request.query_params.multi_items():
        if name in seen:
            raise UsageError(f"parameter {name!r:.100} is given twice")
        seen.add(name)
    note_request(request, session=session, tool=tool, host=host)
    return context_of(request)


async def json_body(request: Request, model: type[_M]) -> _M:
    """The body as ``model``: JSON of a bounded size.

    It is read here and not by the framework, which reads whatever comes, however long it is, before
    anybody looks at its type. Raises UnsupportedError for another media type, TooLargeError beyond
    `MAX_JSON_BYTES`, pydantic.ValidationError (a problem document as well) for what does not fit.
    """
    kind = media_type(request)
    if kind != "application/json":
        raise UnsupportedError(f"the body is {kind or 'of no type'!r:.100}; send application/json")
    body = bytearray()
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise CancelledError("the caller went away")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_JSON_BYTES:
            raise TooLargeError(f"the body may have at most {MAX_JSON_BYTES} bytes")
    return model.model_validate_json(bytes(body))


def media_type(request: Request) -> str:
    """The body's type without its parameters, in lower case; empty when there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
