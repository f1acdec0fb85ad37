"""The read endpoints of XProf's own server, so that scripts written for it work here.

Paths, parameters and documents are those of openxla/xprof's plugin: runs by name, newest name
first, ``train/ID`` for a log directory inside the served one; a run that is not there has no tools
and no hosts. Answers are gzip-compressed whatever the caller accepts, as XProf's are: scripts
unpack them by hand. Errors have XProf's status and are problem documents.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from peakline.engine import Answer
from peakline.errors import ForbiddenError, NotFoundError, UsageError
from peakline.repository import check_name
from peakline.service.http.answers import gzipped
from peakline.service.http.describe import READING, answer, described
from peakline.service.http.middleware import note_request
from peakline.service.http.parameters import NAME, OPTIONAL_NAME, RUN, RootQuery
from peakline.service.http.requests import Context, context_of
from peakline.service.http.routing import Routes
from peakline.service.http.tool_routes import ANSWER_HEADERS, TOOL_CONTENT
from peakline.toolbox.parameters import parameter

routes = Routes("xprof", "/data/plugin/profile")

_ALL_HOSTS = "ALL_HOSTS"
_WHOLE_TRACE, _STREAMED_TRACE = "trace_viewer", "trace_viewer@"
"""XProf lists the trace viewer that asks for a part at a time in place of the other."""

_FIRST = (
    "overview_page",
    _STREAMED_TRACE,
    "graph_viewer",
    "op_profile",
    "input_pipeline_analyzer",
    "kernel_stats",
    "memory_profile",
    "memory_viewer",
    "roofline_model",
    "perf_counters",
    "pod_viewer",
    "framework_op_stats",
    "hlo_stats",
    "inference_profile",
    "megascale_stats",
)
"""XProf's order, of the tools that both have; others follow by name."""

_PATHS = ("session_path", "run_path")
_NAMES = {"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}}
_HOSTS = {
    "application/json": {
        "schema": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["hostname"],
                "properties": {"hostname": {"type": "string"}},
            },
        }
    }
}


class RunsQuery(RootQuery):
    """The parameters of the list of runs. As XProf does, these routes pass over others."""

    takes_others = True


class RunQuery(RunsQuery):
    """The parameters of routes about one run."""

    run: str = parameter(
        description="a run's name", schema={**RUN, "examples": ["2026_11_20_17_04_52"]}
    )


class HostsQuery(RunQuery):
    """The parameters of the list of hosts."""

    tag: str = parameter(
        "", description="a tool's name, which changes nothing", schema=OPTIONAL_NAME
    )


class DataQuery(RunQuery):
    """The parameters of a tool's answer; others are the tool's own."""

    tag: str = parameter(
        description="a tool's name", schema={**NAME, "examples": ["memory_profile"]}
    )
    host: str = parameter("", description=f"a host, or {_ALL_HOSTS}", schema=OPTIONAL_NAME)
    hosts: str = parameter("", description="the same, as some clients call it")


@routes.get(
    "/runs",
    summary="The runs of a log directory",
    responses=described(*READING, _200=answer("names, in falling order", _NAMES)),
)
async def runs(request: Request, query: RunsQuery) -> Response:
    """Sessions of the log directory and of those inside it."""
    context = context_of(request)

    def work() -> list[str]:
        result = context.access.repository(query.root).runs()
        return sorted((run.name for run in context.access.inside(result)), reverse=True)

    return await _answered(request, context, work)


@routes.get(
    "/run_tools",
    summary="The tools that have something to show for a run",
    responses=described(*READING, _200=answer("names; none for a run that is not there", _NAMES)),
)
async def run_tools(request: Request, query: RunQuery) -> Response:
    """Names of tools."""
    context = context_of(request)
    note_request(request, session=query.run)

    def work() -> list[str]:
        try:
            tools = context.analysis.tools(query.root, query.run)
        except NotFoundError:
            return []
        tools = [name for name in tools if name != _WHOLE_TRACE or _STREAMED_TRACE not in tools]
        first = [name for name in _FIRST if name in tools]
        return first + sorted(set(tools).difference(first))

    return await _answered(request, context, work)


@routes.get(
    "/hosts",
    summary="The hosts of a run",
    responses=described(*READING, _200=answer("hosts; none for a run that is not there", _HOSTS)),
)
async def hosts(request: Request, query: HostsQuery) -> Response:
    """Hosts that have a profile. ``tag`` changes nothing: every tool shows every host."""
    context = context_of(request)
    note_request(request, session=query.run, tool=query.tag)

    def work() -> list[dict[str, str]]:
        if query.tag:
            check_name("tool", query.tag)
        try:
            session = context.access.run(query.root, query.run, nested=True)
        except NotFoundError:
            return []
        result = context.access.host_files(session)
        return [{"hostname": file.host} for file in sorted(result, key=lambda file: file.host)]

    return await _answered(request, context, work)


@routes.get(
    "/data",
    summary="What a tool shows of a run",
    responses=described(
        *READING,
        _200=answer("the bytes of the tool", TOOL_CONTENT, ANSWER_HEADERS),
        _304={"description": "If-None-Match has the ETag of what would be sent"},
    ),
)
async def data(request: Request, query: DataQuery) -> Response:
    """One tool's answer. Further parameters are the tool's own; unknown ones are ignored."""
    context = context_of(request)
    named = query.host or query.hosts
    note_request(request, session=query.run, tool=query.tag, host=named)
    _refuse_paths(request)
    parameters = {
        name: request.query_params.getlist(name)[0]
        for name in request.query_params
        if name not in DataQuery.declared()
    }

    def find() -> Answer:
        wanted = _one_host(context, query.root, query.run, named)
        return context.analysis.tool_data(query.root, query.run, wanted, query.tag, parameters)

    return await context.answered(request, find, always_gzip=True)


async def _answered(request: Request, context: Context, work: Callable[[], Any]) -> Response:
    """A JSON document as XProf sends it."""
    _refuse_paths(request)

    def respond() -> Response:
        return Response(
            gzipped(json.dumps(work(), sort_keys=True).encode()),
            media_type="application/json",
            headers={"Content-Encoding": "gzip"},
        )

    return await context.work.answer(request, respond)


def _one_host(context: Context, root: str, run: str, named: str) -> str:
    """The host to ask for; empty is all of them, which some clients list one by one."""
    if named in {"", _ALL_HOSTS}:
        return ""
    names = named.split(",")
    if len(names) == 1:
        return named
    session = context.access.run(root, run, nested=True)
    if set(names) != {file.host for file in context.access.host_files(session)}:
        raise UsageError(f"name one host, or {_ALL_HOSTS}")
    return ""


def _refuse_paths(request: Request) -> None:
    """XProf reads any directory that a request names. Here that would answer another question."""
    for name in _PATHS:
        if request.query_params.get(name):
            raise ForbiddenError(f"{name}: no request can name a directory here; use run")
