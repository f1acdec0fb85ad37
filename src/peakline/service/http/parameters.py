"""The parameters of the routes, as the framework and ``/openapi.json`` know them.

What a name may be is said here for readers of the document; it is `peakline.service.access` that
refuses others, in the same words for every face.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from peakline.repository.names import INVISIBLE
from peakline.service.session_pages import Sort

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

SessionPath = Annotated[
    str,
    Path(
        description="a session's id",
        json_schema_extra=NAME,
        examples=["2026_11_20_17_04_52"],
    ),
]
FigurePath = Annotated[
    str,
    Path(description="a figure's name", json_schema_extra=NAME, examples=["memory_over_time"]),
]
ToolPath = Annotated[
    str,
    Path(description="a tool's name", json_schema_extra=NAME, examples=["memory_profile"]),
]


class _Strict(BaseModel):
    """Misspelt parameters are refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoParameters(_Strict):
    """The parameters of routes that take none."""


class RootParameters(_Strict):
    """The parameters of routes that ask for a repository."""

    root: str = Field("", description=ROOT_MEANING, json_schema_extra=ROOT)


class ListParameters(RootParameters):
    """The parameters of the list of sessions: a page of it."""

    offset: int = Field(0, ge=0, le=_MOST_OFFSET, description="leave out so many sessions")
    limit: int | None = Field(
        None, ge=0, le=MOST_OF_A_PAGE, description="at most so many sessions; by default all"
    )
    search: str = Field(
        "",
        max_length=_LONGEST_TEXT,
        description="only sessions that have each of these texts, with spaces between, in their "
        "name or that of a host, in any case",
        examples=["train worker-0"],
    )
    sort: Sort = Field(
        "newest", description="`newest`: as without it; `-` before a column: descending"
    )
    tools: bool = Field(
        default=True,
        description="false: nobody looks into the profiles, and `tools` is null. Of ten thousand "
        "sessions a page comes at once then",
    )


class HostParameters(RootParameters):
    """The parameters of routes that ask for one host's profile."""

    host: str = Field("", description=_HOST, json_schema_extra=OPTIONAL_NAME)


class CompareParameters(RootParameters):
    """The parameters of a comparison."""

    first: str = Field(
        description="the earlier session's id", json_schema_extra=RUN, examples=_SESSIONS[:1]
    )
    second: str = Field(
        description="the later session's id", json_schema_extra=RUN, examples=_SESSIONS[1:]
    )
    first_host: str = Field("", description=_HOST, json_schema_extra=OPTIONAL_NAME)
    second_host: str = Field("", description=_HOST, json_schema_extra=OPTIONAL_NAME)
    format: Literal["json", "markdown"] = Field("json", description="of the answer")


class FigureParameters(HostParameters):
    """The parameters of a figure."""

    theme: Literal["light", "dark"] = Field("light", description="the page that it is drawn for")
    allocator: str | None = Field(
        None, description="this allocator, where the figure takes one", max_length=_LONGEST_TEXT
    )
    device: str | None = Field(
        None, description="this device, where the figure takes one", max_length=_LONGEST_TEXT
    )
    side: Literal["device", "host"] | None = Field(
        None, description="only what ran there, where the figure takes it"
    )


class UploadParameters(RootParameters):
    """The parameters of an upload."""

    session_id: str = Field(
        "",
        description="the new session's id; by default made from the time",
        json_schema_extra=OPTIONAL_NAME,
    )
    host: str = Field(
        "",
        description="whose profile it is; by default from file_name, else `upload`",
        json_schema_extra=OPTIONAL_NAME,
    )
    file_name: str = Field(
        "", description="the name that the file has, such as worker-0.xplane.pb", max_length=1000
    )


NoQuery = Annotated[NoParameters, Query()]
RootQuery = Annotated[RootParameters, Query()]
ListQuery = Annotated[ListParameters, Query()]
CompareQuery = Annotated[CompareParameters, Query()]
FigureQuery = Annotated[FigureParameters, Query()]
HostQuery = Annotated[HostParameters, Query()]
UploadQuery = Annotated[UploadParameters, Query()]
