"""Questions of every kind about one log directory, each with its answer, found out beforehand by
one thread that opens the files itself and shares nothing with a server.
"""

import re
from pathlib import Path
from urllib.parse import quote, urlencode

from tests.service.conftest import SESSIONS
from tests.service.load import GrpcQuestion, HttpQuestion, Refused

import peakline
from peakline.repository import Repository, extent_of
from peakline.tools import find_tool

HALF = "half"
"""A session of two hosts of which one cannot be read."""
_TOOL = "/api/sessions/{session_id}/tools/{tool}"
_QUERIES = (
    "select count(*) as n, min(start_ps) as first, max(start_ps) as last from events",
    "select activity, count(*) as n from allocator_events group by 1 order by 1",
)


def add_half_session(logdir: Path) -> None:
    profiles = logdir / "plugins" / "profile"
    content = (profiles / SESSIONS["tf2_multihost"] / "localhost_47507.xplane.pb").read_bytes()
    (profiles / HALF).mkdir()
    (profiles / HALF / "good.xplane.pb").write_bytes(content)
    (profiles / HALF / "bad.xplane.pb").write_bytes(b"this is no profile at all\n" * 100)


def files_of(logdir: Path) -> int:
    """How many files of the directory can be read."""
    return len(list(logdir.glob("plugins/profile/*/*.xplane.pb*"))) - 1


def questions_of(logdir: Path) -> list[GrpcQuestion | HttpQuestion]:
    """At least one of every kind over each face; the directory has the sessions of `SESSIONS` and
    the half one.
    """
    repository, layout = peakline.Repository(logdir), Repository(logdir)
    listed = [(session.session_id, session.tools()) for session in repository.sessions()]
    documents = [
        {"session_id": name, "hosts": repository.session(name).hosts, "tools": tools}
        | extent_of(layout.session(name).hosts()).as_json()
        for name, tools in listed
    ]
    return [
        GrpcQuestion("EnumSessions", {}, listed),
        HttpQuestion("GET", "/api/sessions", "/api/sessions", documents),
        *_of_tools(logdir),
        *_of_all_hosts(logdir),
        *_of_tables(logdir),
        *_refusals(logdir),
    ]


def _of_tools(logdir: Path) -> list[GrpcQuestion | HttpQuestion]:
    two_hosts = SESSIONS["tf2_multihost"]
    request = [
        (SESSIONS["tf2_cnn"], "vm", "memory_profile", {}),
        (SESSIONS["tf2_cnn"], "vm", "memory_profile", {"format": "proto"}),
        (SESSIONS["tf2_cnn"], "vm", "memory_profile", {"max_snapshots": "7"}),
        (SESSIONS["tf2_two_devices"], "vm", "memory_profile", {}),
        (SESSIONS["tf2_cnn"], "vm", "memory_findings", {}),
        (SESSIONS["tf2_cnn"], "vm", "memory_findings", {"step": "train 3", "kind": "leak"}),
        (SESSIONS["tf2_two_devices"], "vm", "trace_viewer", {"show_memory": "false"}),
        (SESSIONS["jax_captured"], "localhost_9912", "trace_viewer", {}),
        (two_hosts, "localhost_47507", "memory_profile", {}),
        (two_hosts, "localhost_56665", "memory_profile", {}),
        (two_hosts, "localhost_56665", "trace_viewer", {}),
    ]
    made: list[GrpcQuestion | HttpQuestion] = []
    for session, host, tool, given in request:
        parameters = dict(given)
        chosen = parameters.pop("format", None)
        with peakline.open(logdir, session=session, host=host) as profile:
            content = profile.tool(tool, format=chosen, **parameters).content
        made += _both(session, host, tool, given, chosen or "json", content, ".*")
    return made


def _of_all_hosts(logdir: Path) -> list[GrpcQuestion | HttpQuestion]:
    """The answers of the single hosts, put together."""
    made: list[GrpcQuestion | HttpQuestion] = []
    two = (SESSIONS["tf2_multihost"], ("localhost_47507", "localhost_56665"), "(?!.*host ).*")
    for name, session, hosts, remarks in (
        ("memory_profile", *two),
        ("memory_findings", *two),
        ("memory_profile", HALF, ("good",), "host bad: .*nothing that Peakline reads.*"),
    ):
        tool = find_tool(name)
        parts = []
        for host in hosts:
            with peakline.open(logdir, session=session, host=host) as profile:
                parts.append((host, tool.partial(profile, tool.validated({}))))
        content = tool.combine(parts, tool.validated({}), "json")
        made += _both(session, "", tool.name, {}, "json", content, remarks)
    return made


def _both(
    session: str,
    host: str,
    tool: str,
    parameters: dict[str, str],
    chosen: str,
    content: bytes,
    remarks: str,
) -> tuple[GrpcQuestion, HttpQuestion]:
    """One question over each face."""
    fields = {"session_id": session, "host_name": host, "tool_name": tool, "parameters": parameters}
    query = urlencode({"host": host} | parameters)
    return (
        GrpcQuestion("GetSessionToolData", fields, (chosen, content, remarks)),
        HttpQuestion("GET", f"/api/sessions/{session}/tools/{tool}?{query}", _TOOL, content),
    )


def _of_tables(logdir: Path) -> list[HttpQuestion]:
    made = []
    for session, host in ((SESSIONS["tf2_cnn"], "vm"), (HALF, "good")):
        with peakline.open(logdir, session=session, host=host) as profile:
            for query in _QUERIES:
                rows = profile.sql(query).to_pylist()
                made.append(
                    HttpQuestion(
                        "POST",
                        f"/api/sessions/{session}/sql",
                        "/api/sessions/{session_id}/sql",
                        rows,
                        {"query": query, "host": host},
                    )
                )
            made.append(
                HttpQuestion(
                    "GET",
                    f"/api/sessions/{session}/tables?host={host}",
                    "/api/sessions/{session_id}/tables",
                    profile.tables,
                )
            )
    return made


def _refusals(logdir: Path) -> list[GrpcQuestion | HttpQuestion]:
    """What is wrong on purpose."""
    cnn, two_hosts = SESSIONS["tf2_cnn"], SESSIONS["tf2_multihost"]
    wrong = [
        ("nosuch", "", "memory_profile", {}, Refused("NOT_FOUND", 404, "no session 'nosuch'")),
        (cnn, "", "nosuch", {}, Refused("NOT_FOUND", 404, "no tool 'nosuch'; there is: ")),
        (cnn, "h", "memory_profile", {}, Refused("NOT_FOUND", 404, "no host 'h'; there is: vm")),
        (
            two_hosts, "", "trace_viewer", {},
            Refused("INVALID_ARGUMENT", 400, "trace_viewer shows one host; there is: localhost_4"),
        ),
        (cnn, "vm", "memory_profile", {"format": "pdf"}, Refused("INVALID_ARGUMENT", 400, "pdf")),
        (
            cnn, "vm", "memory_profile", {"max_snapshots": "-1"},
            Refused("INVALID_ARGUMENT", 400, "max_snapshots"),
        ),
        (HALF, "bad", "memory_profile", {}, Refused("INVALID_ARGUMENT", 400, "bad")),
    ]  # fmt: skip
    made: list[GrpcQuestion | HttpQuestion] = []
    for session, host, tool, parameters, refused in wrong:
        over_grpc, over_http = _both(session, host, tool, parameters, "", b"", "")
        made += [
            GrpcQuestion(over_grpc.method, over_grpc.fields, refused),
            HttpQuestion(over_http.verb, over_http.path, over_http.route, refused),
        ]
    outside = Refused("PERMISSION_DENIED", 403, "")
    sql = f"/api/sessions/{cnn}/sql"
    return [
        *made,
        GrpcQuestion("EnumSessions", {"repository_root": str(logdir.parent)}, outside),
        HttpQuestion(
            "GET", f"/api/sessions?root={quote(str(logdir.parent), safe='')}", "/api/sessions",
            outside,
        ),
        HttpQuestion(
            "POST", sql, "/api/sessions/{session_id}/sql",
            Refused("", 400, re.escape("nosuch")), {"query": "select nosuch from events"},
        ),
        HttpQuestion(
            "POST", sql, "/api/sessions/{session_id}/sql",
            Refused("", 400, ""), {"query": "select 1", "host": 7},
        ),
    ]  # fmt: skip
