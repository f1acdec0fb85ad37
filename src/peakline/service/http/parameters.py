"""The parameters of the routes, as `routing` reads and ``/openapi.json`` describes them.

What a name may be is said here for readers of the document; it is `peakline.service.access` that
refuses others, in the same words for every face.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from peakline.repository.names import INVISIBLE
from peakline.service.session_pages import Sort
from peakline.toolbox.parameters import Parameters, parameter

_CONTROL = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
_NAME = rf"[^{INVISIBLE}./\\-][^{INVISIBLE}/\\]*"
_LONGEST_NAME = 200  # bytes of UTF-8; the schema can only count characters

_LONGEST_TEXT = 500
_MOST_OFFSET = 1 << 40
MOST_OF_A_PAGE = 1000
"""A page of the list of sessions has at most so many."""

NAME: dict[str, Any] = {"minLength": 1, "maxLength": _LONGEST_NAME, "pattern": f"^{_NAME}$"}
"""JSON schema of a name: one part of a path."""

OPTIONAL_NAME: dict[str, Any] = {"maxLength": _LONGEST_NAME, "pattern": f"^({_NAME})?$"}
"""And of one that may be left out."""

RUN: dict[str, Any] = {"minLength": 1, "pattern": f"^{_NAME}(/{_NAME})*$"}
"""JSON schema of a run: a session's name behind those of directories."""

ROOT: dict[str, Any] = {"pattern": rf"^[^{_CONTROL}]*$"}
"""JSON schema of a log directory."""

ROOT_MEANING = "a log directory that this server serves; may be left out when it serves one"
_SESSIONS = ["2026_11_20_16_57_05", "2026_11_20_17_04_52"]
_HOST = "a host of the session; may be left out when it has one"


class SessionPath(Parameters):
    """The path of routes about one session."""

    session_id: str = parameter(
        description="a session's id", schema={**NAME, "examples": _SESSIONS[1:]}
    )


class FigurePath(SessionPath):
    """The path of a figure."""

    figure: str = parameter(
        description="a figure's name", schema={**NAME, "examples": ["memory_over_time"]}
    )


class ToolPath(SessionPath):
    """The path of a tool's answer."""

    tool: str = parameter(
        description="a tool's name", schema={**NAME, "examples": ["memory_profile"]}
    )


class Query(Parameters):
    """What may stand behind the question mark: misspelt and repeated names are refused."""

    takes_others: ClassVar[bool] = False
    """Whether other names are passed over, and the last of repeated ones counts."""


class NoQuery(Query):
    """The parameters of routes that take none."""


class RootQuery(Query):
    """The parameters of routes that ask for a repository."""

    root: str = parameter("", description=ROOT_MEANING, schema=ROOT)


class ListQuery(RootQuery):
    """The parameters of the list of sessions: a page of it."""

    offset: int = parameter(0, ge=0, le=_MOST_OFFSET, description="leave out so many sessions")
    limit: int | None = parameter(
        None, ge=0, le=MOST_OF_A_PAGE, description="at most so many sessions; by default all"
    )
    search: str = parameter(
        "",
        max_length=_LONGEST_TEXT,
        description="only sessions that have each of these texts, with spaces between, in their "
        "name or that of a host, in any case",
        schema={"examples": ["train worker-0"]},
    )
    sort: Sort = parameter(
        "newest", description="`newest`: as without it; `-` before a column: descending"
    )
    tools: bool = parameter(
        default=True,
        description="false: nobody looks into the profiles, and `tools` is null. Of ten thousand "
        "sessions a page comes at once then",
    )


class HostQuery(RootQuery):
    """The parameters of routes that ask for one host's profile."""

    host: str = parameter("", description=_HOST, schema=OPTIONAL_NAME)


class CompareQuery(RootQuery):
    """The parameters of a comparison."""

    first: str = parameter(
        description="the earlier session's id", schema={**RUN, "examples": _SESSIONS[:1]}
    )
    second: str = parameter(
        description="the later session's id", schema={**RUN, "examples": _SESSIONS[1:]}
    )
    first_host: str = parameter("", description=_HOST, schema=OPTIONAL_NAME)
    second_host: str = parameter("", description=_HOST, schema=OPTIONAL_NAME)
    format: Literal["json", "markdown"] = parameter("json", description="of the answer")


class FigureQuery(HostQuery):
    """The parameters of a figure."""

    theme: Literal["light", "dark"] = parameter(
        "light", description="the page that it is drawn for"
    )
    allocator: str | None = parameter(
        None, description="this allocator, where the figure takes one", max_length=_LONGEST_TEXT
    )
    device: str | None = parameter(
        None, description="this device, where the figure takes one", max_length=_LONGEST_TEXT
    )
    side: Literal["device", "host"] | None = parameter(
        None, description="only what ran there, where the figure takes it"
    )


class UploadQuery(RootQuery):
    """The parameters of an upload."""

    session_id: str = parameter(
        "", description="the new session's id; by default made from the time", schema=OPTIONAL_NAME
    )
    host: str = parameter(
        "",
        description="whose profile it is; by default from file_name, else `upload`",
        schema=OPTIONAL_NAME,
    )
    file_name: str = parameter(
        "", description="the name that the file has, such as worker-0.xplane.pb", max_length=1000
    )
