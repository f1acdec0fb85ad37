"""The JSON documents that come and go, as pydantic models: checked, and described for callers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from peakline.service.http.parameters import NAME, OPTIONAL_NAME


class HealthDocument(BaseModel):
    """The server answers."""

    status: Literal["ok"] = Field(description="always `ok`")


class ServerDocument(BaseModel):
    """What the server was started with, as far as callers need it."""

    version: str = Field(description="of Peakline", examples=["0.1.0"])
    roots: list[str] = Field(
        min_length=1,
        description="the log directories, each by a name that `root` takes",
        examples=[["logs"]],
    )
    read_only: bool = Field(description="whether captures and uploads are refused")
    max_upload_bytes: int = Field(ge=1, description="the largest upload")
    max_capture_s: float = Field(gt=0, description="how long a capture may take, in seconds")
    profiler_port: int = Field(
        ge=1, le=65535, description="where hosts record; a port in a request is ignored"
    )
    workers: list[str] = Field(
        description="hosts that have a profiler of their own (`--worker`)", examples=[["trainer-0"]]
    )
    source: str | None = Field(
        description="the path that `peakline view` was given, for commands that give the same; "
        "null where the server does not say it",
        examples=["host.xplane.pb"],
    )
    source_is_logdir: bool = Field(
        description="whether `source` is a log directory, in which a command names the session"
    )


class SessionDocument(BaseModel):
    """A session: the same document as of `peakline sessions --json`."""

    session_id: str = Field(description="the session's id", examples=["2026_11_20_17_04_52"])
    hosts: list[str] = Field(description="the hosts that have a profile", examples=[["worker-0"]])
    tools: list[str] | None = Field(
        description="the tools that have something to show for a host; null where the caller "
        "wanted nobody to look for them",
        examples=[["memory_profile", "trace_viewer"]],
    )
    bytes: int | None = Field(
        ge=0, description="size of its profiles; null where the file system does not say"
    )
    modified: str | None = Field(
        description="when the newest of them last changed, in UTC; null where not known",
        examples=["2026-11-20T17:04:54Z"],
        json_schema_extra={"format": "date-time"},
    )


class ToolDocument(BaseModel):
    """A tool of this server."""

    name: str = Field(description="its name in requests", examples=["memory_profile"])
    doc: str = Field(description="what it shows")
    formats: list[str] = Field(description="the default first", examples=[["json", "proto"]])
    parameters: dict[str, Any] = Field(description="the JSON schema of its parameters")


class ColumnDocument(BaseModel):
    """A column of a table."""

    name: str = Field(examples=["start_ps"], description="what queries call it")
    type: Literal["int32", "int64", "uint64", "float64", "bool", "string"] = Field(
        description="of its values"
    )
    unit: Literal["ps", "ns", "us", "s", "bytes", "%", ""] = Field(
        description="of its values; empty where they have none"
    )
    nullable: bool = Field(description="whether a value may be null")
    doc: str = Field(description="what it means")


class TableDocument(BaseModel):
    """A table that queries may ask for."""

    name: str = Field(examples=["buffers"], description="what queries call it")
    doc: str = Field(description="what a row is")
    columns: list[ColumnDocument] = Field(description="in order")


class ViewDocument(TableDocument):
    """A query that comes with the service, which other queries may name as they name a table."""

    name: str = Field(examples=["slow_steps"], description="what queries call it")
    doc: str = Field(description="what it answers")
    units: str = Field(description="of its values, in words")
    tables: list[str] = Field(
        description="a profile has the view where it has all of these", examples=[["buffers"]]
    )


_SqlValue = str | int | float | bool | None


class SqlBody(BaseModel):
    """A query over the tables of one host's profile."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(
        min_length=1,
        description="one SELECT statement; GET .../tables lists the tables, GET /api/views the "
        "views over them",
        examples=["select op, sum(allocated_bytes) as bytes from buffers group by op limit 10"],
    )
    parameters: list[_SqlValue] | dict[str, _SqlValue] | None = Field(
        None,
        description="values for the query: an array for ?, an object for $name",
        examples=[[1024], {"least": 1024}],
    )
    host: str = Field(
        "",
        description="a host of the session; may be left out when it has one",
        json_schema_extra=OPTIONAL_NAME,
    )
    format: Literal["json", "csv", "parquet"] = Field("json", description="of the answer")
    large_integers: Literal["number", "string"] = Field(
        "number",
        description="how JSON spells integers beyond 2^53 - 1: as numbers, exactly, which some "
        "languages read as doubles; or as strings",
    )
    max_rows: int | None = Field(
        None,
        ge=0,
        le=(1 << 53) - 1,
        strict=True,  # false and "5" are no numbers
        description="only the first rows are sent, this many; by default all. Peakline-Rows says "
        "how many there are",
    )


class CaptureBody(BaseModel):
    """What to profile, and for how long."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hosts: list[str] = Field(
        min_length=1,
        description="hosts that this server may profile; a port is ignored",
        examples=[["localhost"]],
    )
    duration_ms: int = Field(
        ge=1, le=(1 << 63) - 1, description="how long to record", examples=[2000]
    )
    session_id: str = Field(
        "",
        description="the new session's id; by default made from the time",
        json_schema_extra=OPTIONAL_NAME,
    )
    options: dict[str, str | int | bool] = Field(
        default_factory=dict,
        description="fields of ProfileOptions by name, such as `python_tracer_level`; other names "
        "are options of one kind of device and go into `advanced_configuration`",
        examples=[{"host_tracer_level": 2}],
    )


class HostOutcomeDocument(BaseModel):
    """What came of one host."""

    host: str = Field(description="the host's name in the session")
    address: str = Field(description="where its profiler was reached")
    state: Literal["stored", "saved_by_host", "empty", "failed"] = Field(
        description="`saved_by_host`: on a disk that it shares with this server; `empty`: nothing "
        "was recorded, and nothing is stored"
    )
    size: int = Field(ge=0, description="bytes of its profile")
    error: str = Field(description="what went wrong, one line; empty when nothing did")
    attempts: int = Field(ge=0, description="how many attempts were made")


class CaptureDocument(BaseModel):
    """What came of a capture."""

    session_id: str = Field(description="the session's id", json_schema_extra=NAME)
    empty_trace: bool = Field(description="no host recorded anything; there is no session then")
    outcomes: list[HostOutcomeDocument] = Field(description="one for every requested host")


class CaptureProgressEvent(BaseModel):
    """A line of a capture that is answered as it goes: what a host does now."""

    event: Literal["progress"] = Field(description="always `progress`")
    host: str = Field(description="the host's name in the session")
    state: Literal[
        "waiting", "connecting", "recording", "receiving", "retrying",
        "stored", "saved_by_host", "empty", "failed",
    ] = Field(description="the last four are those of its outcome")  # fmt: skip
    detail: str = Field(description="more about it, one line; may be empty")


class CaptureResultEvent(CaptureDocument):
    """The last line: what came of it, as the plain answer has it."""

    event: Literal["result"] = Field(description="always `result`")
    notes: list[str] = Field(description="the lines of `Peakline-Notes`")


class CaptureErrorEvent(BaseModel):
    """The last line where it failed after it had begun: the facts of the problem document."""

    event: Literal["error"] = Field(description="always `error`")
    status: int = Field(description="the HTTP status of the plain answer", ge=400, le=599)
    code: str = Field(description="the name of the gRPC status", examples=["UNAVAILABLE"])
    detail: str = Field(description="what, where, what to do: one line")


class FigureKindDocument(BaseModel):
    """A figure that is drawn of a profile."""

    name: str = Field(description="its name in requests", examples=["memory_over_time"])
    doc: str = Field(description="what it shows")
    parameters: dict[str, Any] = Field(description="the JSON schema of its own parameters")


class FigureDocument(BaseModel):
    """A figure as Plotly reads it."""

    data: list[dict[str, Any]] = Field(description="the traces")
    layout: dict[str, Any] = Field(
        description="the layout; `meta.description` says in words what is to be seen"
    )
