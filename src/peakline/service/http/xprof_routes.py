"""The endpoints of XProf's own server, so that its front end and scripts written for it work here.

Paths, parameters and documents are those of openxla/xprof's plugin: runs by name, newest name
first, ``train/ID`` for a log directory inside the served one; a run that is not there has no tools
and no hosts. Answers are gzip-compressed whatever the caller accepts, as XProf's are: scripts
unpack them by hand. Errors have XProf's status and are problem documents.
"""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from peakline import schema
from peakline.capture import profile_options
from peakline.engine import Answer
from peakline.errors import ForbiddenError, NotFoundError, PeaklineError, RemoteError, UsageError
from peakline.repository import check_name
from peakline.safe_text import spreadsheet_text
from peakline.service.addresses import split_port
from peakline.service.capture_hosts import SCHEME
from peakline.service.http.answers import gzipped, json_response
from peakline.service.http.describe import DOING, READING, answer, described
from peakline.service.http.middleware import note_request
from peakline.service.http.parameters import NAME, OPTIONAL_NAME, RUN, NoQuery, RootQuery
from peakline.service.http.problems import problem_of
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

XPROF = "2.24.2"
"""The version of XProf that answers are equal to."""
_TEXT = {"text/plain": {"schema": {"type": "string"}}}
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


class AnyQuery(NoQuery):
    """No parameter changes anything."""

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


class XprofCaptureQuery(RunsQuery):
    """The parameters of a capture, as XProf's front end sends them."""

    service_addr: str = parameter("", description="the profiler's address, HOST:PORT")
    worker_list: str = parameter("", description="those of several, comma between")
    duration: int = parameter(1000, ge=1, le=86_400_000, description="ms to record")
    delay: int = parameter(0, ge=0, le=86_400_000, description="ms to wait before that")
    host_tracer_level: int = parameter(2, ge=0, le=3, description="how much of the host")
    device_tracer_level: int = parameter(1, ge=0, le=1, description="whether devices")
    python_tracer_level: int = parameter(0, ge=0, le=1, description="whether Python's calls")


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
    "/version",
    summary="The version of XProf whose endpoints these are",
    responses=described(*READING, _200=answer("a version", _TEXT)),
)
async def version(_request: Request, _query: AnyQuery) -> Response:
    """The version whose answers the tools' are compared with."""
    return Response(XPROF, media_type="text/plain")


@routes.get(
    "/config",
    summary="What XProf's front end shows",
    responses=described(*READING, _200=answer("its settings", {"application/json": {}})),
)
async def config(request: Request, _query: AnyQuery) -> Response:
    """Whether it may capture; the rest as by default."""
    shown = {
        "hideCaptureProfileButton": context_of(request).settings.read_only,
        "srcPathPrefix": "",
        "enableTabNameLabel": False,
    }
    return await _answered(request, context_of(request), lambda: shown)


@routes.get(
    "/module_list",
    summary="The compiled programs of a run",
    responses=described(
        *READING, _200=answer("names with ids, comma between; none for no run", _TEXT)
    ),
)
async def module_list(request: Request, query: RunQuery) -> Response:
    """Those that need most memory first, so that the front end begins with them."""
    context = context_of(request)
    note_request(request, session=query.run)
    _refuse_paths(request)

    def work() -> Response:
        names: dict[str, None] = {}
        try:
            session = context.access.run(query.root, query.run, nested=True)
            for file in context.access.host_files(session):
                names |= dict.fromkeys(_programs(context, query, file.host))
        except NotFoundError:
            names = {}
        return Response(",".join(names), media_type="text/plain")

    return await context.work.answer(request, work)


def _programs(context: Context, query: RunQuery, host: str) -> list[str]:
    """The names of a host's programs; none where it has none."""
    try:
        result = context.analysis.tool_data(
            query.root, query.run, host, "program_memory", {"limit": "0", "width": "1"}
        )
    except (NotFoundError, UsageError):
        return []
    return [one["name"] for one in json.loads(result.content)["programs"]]


@routes.get(
    "/data_csv",
    summary="What a tool shows of a run, as a table for a spreadsheet",
    responses=described(*READING, _200=answer("the tool's first table", {"text/csv": {}})),
)
async def data_csv(request: Request, query: DataQuery) -> Response:
    """Every cell is quoted, as XProf does; no spreadsheet takes one for a formula."""
    context = context_of(request)
    find = _finding(request, query)

    def work() -> Response:
        name = _file_name(query)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(_csv_of(find(), query.tag), media_type="text/csv", headers=headers)

    return await context.work.answer(request, work)


def _file_name(query: DataQuery) -> str:
    """As XProf calls it: the tool, the run and the end of the host's name."""
    parts = (query.tag, query.run, query.host.split("-")[-1])
    plain = (re.sub(r"[^a-zA-Z0-9_-]", "_", part) for part in parts)
    return "_".join(part for part in plain if part) + ".csv"


def _csv_of(answer: Answer, tool: str) -> str:
    """The first table of an answer: the labels of its columns, and a line per row."""
    try:
        table = json.loads(answer.content)
        table = table[0] if isinstance(table, list) else table
        labels = [column.get("label", column.get("id", "")) for column in table["cols"]]
        lines = [[cell.get("v") if cell else None for cell in row["c"]] for row in table["rows"]]
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UsageError(f"{tool} has no table: CSV is of tools that answer with one") from None
    stream = io.StringIO()
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(labels)
    writer.writerows(
        ["" if value is None else spreadsheet_text(str(value)) for value in line] for line in lines
    )
    return stream.getvalue()


@routes.get(
    "/capture_profile",
    summary="Profile a running job",
    responses=described(*DOING, _200=answer("result or error", {"application/json": {}})),
)
async def capture_profile(request: Request, query: XprofCaptureQuery) -> Response:
    """A session of what the profilers at the addresses record, as `POST /api/captures` makes it.

    A page of another site may not ask for it, as for every change.
    """
    context = context_of(request)
    hosts = [one for one in (query.worker_list or query.service_addr).split(",") if one]
    note_request(request, host=",".join(hosts))

    def work() -> Response:
        text_of = context.analysis.public_text
        try:
            _refuse_paths(request)
            result = context.analysis.captures.new_session(
                query.root, "", _reached(context, hosts), _profile_request(query)
            )
            if result.empty_trace:
                errors = [one.error for one in result.outcomes if one.error]
                raise RemoteError("; ".join(errors) or "nothing was recorded")
        except PeaklineError as error:
            problem = problem_of(error, text_of)
            document = json.loads(bytes(problem.body))
            # The front end shows what is called so.
            body = json.dumps(document | {"error": document["detail"]})
            return Response(body, problem.status_code, media_type=problem.media_type)
        note_request(request, session=result.session_id)
        return json_response(request, {"result": "Capture profile successfully. Please refresh."})

    return await context.work.capture(request, work)


def _reached(context: Context, hosts: list[str]) -> list[str]:
    """The hosts; raises UsageError for a port at which no profiler of this server's listens."""
    for host in hosts:
        target = context.access.capture_target(host)
        _, port = split_port(host.removeprefix(SCHEME))
        if port is not None and not target.address.endswith(f":{port}"):
            raise UsageError(
                f"this server captures {target.host} at {target.address}: start it with --worker "
                f"{target.host}={host.removeprefix(SCHEME)} or --profiler-port {port}"
            )
    return hosts


def _profile_request(query: XprofCaptureQuery) -> schema.ProfileRequest:
    options = profile_options(
        {
            "host_tracer_level": str(query.host_tracer_level),
            "device_tracer_level": str(query.device_tracer_level),
            "python_tracer_level": str(query.python_tracer_level),
        }
    )
    options.duration_ms = query.duration
    if query.delay:
        options.start_timestamp_ns = time.time_ns() + query.delay * 1_000_000
    return schema.ProfileRequest(duration_ms=query.duration, opts=options)


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
    """One tool's answer. Further parameters are the tool's own; unknown ones are ignored.

    ``tqx=out:csv`` asks for the tool's table as CSV, as Google's charts do.
    """
    context = context_of(request)
    find = _finding(request, query)
    if not request.query_params.get("tqx", "").startswith("out:csv"):
        return await context.answered(request, find, always_gzip=True)

    def as_csv() -> Answer:
        result = find()
        text = _csv_of(result, query.tag)
        return Answer(text.encode(), "csv", result.warnings, result.notes)

    return await context.answered(request, as_csv, always_gzip=True)


def _finding(request: Request, query: DataQuery) -> Callable[[], Answer]:
    """What answers a request for a tool's data."""
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

    return find


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
