"""The route of comparisons: what changed from one session to another."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from peakline.service.http.answers import MEDIA_TYPES, answer_response
from peakline.service.http.bodies import refuse_repeated
from peakline.service.http.context import context_of
from peakline.service.http.describe import READING, answer, described
from peakline.service.http.observe import note_request
from peakline.service.http.parameters import CompareQuery
from peakline.service.http.tool_routes import ANSWER_HEADERS, NOT_MODIFIED

router = APIRouter(prefix="/api", tags=["sessions"])

_FORMATS = {
    "application/json": {"schema": {"type": "object"}},
    MEDIA_TYPES["markdown"].partition(";")[0]: {},
}
_HEADERS = ANSWER_HEADERS | {"Peakline-Notes": "hosts that are not served: a JSON array of lines"}


@router.get(
    "/compare",
    summary="What changed from one session to another",
    responses=described(
        *READING,
        _200=answer("what `peakline diff` prints in that format", _FORMATS, _HEADERS),
        _304=NOT_MODIFIED,
    ),
)
async def compare(request: Request, query: CompareQuery) -> Response:
    """Peaks and what makes them, step times and where they go, ops, findings; docs/diff.md."""
    context = context_of(request)
    refuse_repeated(request)
    note_request(request, session=query.first, host=query.first_host)

    def work() -> Response:
        found = context.analysis.compare(
            query.root,
            (query.first, query.first_host),
            (query.second, query.second_host),
            format=query.format,
        )
        return answer_response(request, found, context.analysis.public_text)

    return await context.work.answer(request, work)
