"""The route of captures: profile running jobs and keep what they recorded as a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from peakline.service.http.answers import json_response, notes_header
from peakline.service.http.bodies import json_body, refuse_repeated
from peakline.service.http.context import context_of
from peakline.service.http.describe import DOING, described, json_answer, request_body
from peakline.service.http.documents import CaptureBody, CaptureDocument
from peakline.service.http.observe import note_request
from peakline.service.http.parameters import RootQuery
from peakline.service.http.session_routes import location_of

if TYPE_CHECKING:
    from peakline.schema import ProfileOptions

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["captures"])

_SHOWN = 80
_NOTES = {"Peakline-Notes": "what was passed on or understood in another way: a JSON array"}
_LOCATION = {"Location": "the session's document", **_NOTES}


@router.post(
    "/captures",
    summary="Profile running jobs",
    status_code=201,
    responses=described(
        *DOING,
        _200=json_answer(
            "no host recorded anything: no session was made", CaptureDocument, headers=_NOTES
        ),
        _201=json_answer(
            "a session was made; `outcomes` says of which hosts", CaptureDocument, headers=_LOCATION
        ),
    ),
    openapi_extra=request_body(CaptureBody),
)
async def capture(request: Request, query: RootQuery) -> Response:
    """Record on all hosts at once. Hosts that fail do not lose the others."""
    context = context_of(request)
    refuse_repeated(request)
    asked = await json_body(request, CaptureBody)
    note_request(request, session=asked.session_id, host=",".join(asked.hosts))

    def work() -> Response:
        from peakline.capture import profile_options
        from peakline.schema import ProfileRequest

        options = profile_options({key: _text(value) for key, value in asked.options.items()})
        options.duration_ms = asked.duration_ms
        result = context.analysis.new_session(
            query.root,
            asked.session_id,
            asked.hosts,
            ProfileRequest(duration_ms=asked.duration_ms, opts=options),
        )
        outcomes = [
            {**asdict(outcome), "error": context.analysis.told(outcome.error)}
            for outcome in result.outcomes
        ]
        document = {
            "session_id": result.session_id,
            "empty_trace": result.empty_trace,
            "outcomes": outcomes,
        }
        note_request(request, session=result.session_id, host=",".join(asked.hosts))
        left_out = result.notes
        accounted = len(outcomes) + len(left_out)
        headers = notes_header([*left_out, *_notes(asked, options, accounted)])
        if result.empty_trace:
            return json_response(request, document, headers=headers)
        headers["Location"] = location_of(query.root, result.session_id)
        return json_response(request, document, 201, headers)

    return await context.work.capture(request, work)


def _notes(asked: CaptureBody, options: ProfileOptions, profilers: int) -> Iterator[str]:
    """What was understood otherwise than the caller may have meant it."""
    for name in asked.options:
        if name in options.advanced_configuration:
            yield (
                f"option {name[:_SHOWN]!a} is no field of ProfileOptions:"
                " it went to the hosts as advanced_configuration"
            )
    if profilers < len(asked.hosts):
        yield (
            f"{len(asked.hosts)} hosts were named and {profilers} profiled: ports are ignored, and "
            "names of one profiler are one host; --worker NAME=ADDRESS:PORT tells them apart"
        )


def _text(value: str | int | bool) -> str:
    """A value as the command line spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
