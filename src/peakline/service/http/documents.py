"""The JSON documents that come and go: msgspec checks those that come, and describes all."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from peakline.service.http.parameters import NAME, OPTIONAL_NAME


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """What a request may send: misspelt fields are refused, not ignored."""

    texts_are_numbers: ClassVar[bool] = False
    """Whether ``"5"`` and ``5.0`` are understood where a number is wanted."""


class HealthDocument(Struct):
    """The server answers."""

    status: Annotated[Literal["ok"], Meta(description="always `ok`")]


class ServerDocument(Struct):
    """What the server was started with, as far as callers need it."""

    version: Annotated[str, Meta(description="of Peakline", examples=["0.1.0"])]
    roots: Annotated[
        list[str],
        Meta(
            min_length=1,
            description="the log directories, each by a name that `root` takes",
            examples=[["logs"]],
        ),
    ]
    read_only: Annotated[bool, Meta(description="whether captures and uploads are refused")]
    max_upload_bytes: Annotated[int, Meta(ge=1, description="the largest upload")]
    max_capture_s: Annotated[
        float, Meta(gt=0, description="how long a capture may take, in seconds")
    ]
    profiler_port: Annotated[
        int, Meta(ge=1, le=65535, description="where hosts record; a port in a request is ignored")
    ]
    workers: Annotated[
        list[str],
        Meta(
            description="hosts that have a profiler of their own (`--worker`)",
            examples=[["trainer-0"]],
        ),
    ]
    source: Annotated[
        str | None,
        Meta(
            description="the path that `peakline view` was given, for commands that give the same; "
            "null where the server does not say it",
            examples=["host.xplane.pb"],
        ),
    ]
    source_is_logdir: Annotated[
        bool,
        Meta(
            description="whether `source` is a log directory, in which a command names the session"
        ),
    ]


class SessionDocument(Struct):
    """A session: the same document as of `peakline sessions --json`."""

    session_id: Annotated[
        str, Meta(description="the session's id", examples=["2026_11_20_17_04_52"])
    ]
    hosts: Annotated[
        list[str], Meta(description="the hosts that have a profile", examples=[["worker-0"]])
    ]
    tools: Annotated[
        list[str] | None,
        Meta(
            description="the tools that have something to show for a host; null where the caller "
            "wanted nobody to look for them",
            examples=[["memory_profile", "trace_viewer"]],
        ),
    ]
    bytes: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="size of its profiles; null where the file system does not say"),
    ]
    modified: Annotated[
        str | None,
        Meta(
            description="when the newest of them last changed, in UTC; null where not known",
            examples=["2026-11-20T17:04:54Z"],
            extra_json_schema={"format": "date-time"},
        ),
    ]


class ToolDocument(Struct):
    """A tool of this server."""

    name: Annotated[str, Meta(description="its name in requests", examples=["memory_profile"])]
    doc: Annotated[str, Meta(description="what it shows")]
    formats: Annotated[
        list[str], Meta(description="the default first", examples=[["json", "proto"]])
    ]
    parameters: Annotated[dict[str, Any], Meta(description="the JSON schema of its parameters")]


class ColumnDocument(Struct):
    """A column of a table."""

    name: Annotated[str, Meta(examples=["start_ps"], description="what queries call it")]
    type: Annotated[
        Literal["int32", "int64", "uint64", "float64", "bool", "string"],
        Meta(description="of its values"),
    ]
    unit: Annotated[
        Literal["ps", "ns", "us", "s", "bytes", "%", ""],
        Meta(description="of its values; empty where they have none"),
    ]
    nullable: Annotated[bool, Meta(description="whether a value may be null")]
    doc: Annotated[str, Meta(description="what it means")]


class TableDocument(Struct):
    """A table that queries may ask for."""

    name: Annotated[str, Meta(examples=["buffers"], description="what queries call it")]
    doc: Annotated[str, Meta(description="what a row is")]
    columns: Annotated[list[ColumnDocument], Meta(description="in order")]


class ViewDocument(TableDocument):
    """A query that comes with the service, which other queries may name as they name a table."""

    name: Annotated[str, Meta(examples=["slow_steps"], description="what queries call it")]
    doc: Annotated[str, Meta(description="what it answers")]
    units: Annotated[str, Meta(description="of its values, in words")]
    tables: Annotated[
        list[str],
        Meta(
            description="a profile has the view where it has all of these", examples=[["buffers"]]
        ),
    ]


_SqlValue = str | int | float | bool | None


class SqlBody(Body, frozen=True):
    """A query over the tables of one host's profile."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            description="one SELECT statement; GET .../tables lists the tables, GET /api/views the "
            "views over them",
            examples=["select op, sum(allocated_bytes) as bytes from buffers group by op limit 10"],
        ),
    ]
    parameters: Annotated[
        list[_SqlValue] | dict[str, _SqlValue] | None,
        Meta(
            description="values for the query: an array for ?, an object for $name",
            examples=[[1024], {"least": 1024}],
        ),
    ] = None
    host: Annotated[
        str,
        Meta(
            description="a host of the session; may be left out when it has one",
            extra_json_schema=OPTIONAL_NAME,
        ),
    ] = ""
    format: Annotated[Literal["json", "csv", "parquet"], Meta(description="of the answer")] = "json"
    large_integers: Annotated[
        Literal["number", "string"],
        Meta(
            description="how JSON spells integers beyond 2^53 - 1: as numbers, exactly, which some "
            "languages read as doubles; or as strings"
        ),
    ] = "number"
    safe_csv: Annotated[
        bool,
        Meta(description="in CSV ' stands before texts that a spreadsheet takes for a formula"),
    ] = False
    max_rows: Annotated[
        Annotated[int, Meta(ge=0, le=(1 << 53) - 1)] | None,
        Meta(
            description="only the first rows are sent, this many; by default all. Peakline-Rows "
            "says how many there are"
        ),
    ] = None


class CaptureBody(Body, frozen=True):
    """What to profile, and for how long."""

    texts_are_numbers: ClassVar[bool] = True

    hosts: Annotated[
        list[str],
        Meta(
            min_length=1,
            description="hosts that this server may profile; a port is ignored",
            examples=[["localhost"]],
        ),
    ]
    duration_ms: Annotated[
        int, Meta(ge=1, le=(1 << 63) - 1, description="how long to record", examples=[2000])
    ]
    session_id: Annotated[
        str,
        Meta(
            description="the new session's id; by default made from the time",
            extra_json_schema=OPTIONAL_NAME,
        ),
    ] = ""
    options: Annotated[
        dict[str, str | int | bool],
        Meta(
            description="fields of ProfileOptions by name, such as `python_tracer_level`; other "
            "names are options of one kind of device and go into `advanced_configuration`",
            examples=[{"host_tracer_level": 2}],
        ),
    ] = {}


class HostOutcomeDocument(Struct):
    """What came of one host."""

    host: Annotated[str, Meta(description="the host's name in the session")]
    address: Annotated[str, Meta(description="where its profiler was reached")]
    state: Annotated[
        Literal["stored", "saved_by_host", "empty", "failed"],
        Meta(
            description="`saved_by_host`: on a disk that it shares with this server; `empty`: "
            "nothing was recorded, and nothing is stored"
        ),
    ]
    size: Annotated[int, Meta(ge=0, description="bytes of its profile")]
    error: Annotated[str, Meta(description="what went wrong, one line; empty when nothing did")]
    attempts: Annotated[int, Meta(ge=0, description="how many attempts were made")]


class CaptureDocument(Struct):
    """What came of a capture."""

    session_id: Annotated[str, Meta(description="the session's id", extra_json_schema=NAME)]
    empty_trace: Annotated[
        bool, Meta(description="no host recorded anything; there is no session then")
    ]
    outcomes: Annotated[list[HostOutcomeDocument], Meta(description="one for every requested host")]


class CaptureProgressEvent(Struct):
    """A line of a capture that is answered as it goes: what a host does now."""

    event: Annotated[Literal["progress"], Meta(description="always `progress`")]
    host: Annotated[str, Meta(description="the host's name in the session")]
    state: Annotated[
        Literal[
            "waiting", "connecting", "recording", "receiving", "retrying",
            "stored", "saved_by_host", "empty", "failed",
        ],
        Meta(description="the last four are those of its outcome"),
    ]  # fmt: skip
    detail: Annotated[str, Meta(description="more about it, one line; may be empty")]


class CaptureResultEvent(CaptureDocument):
    """The last line: what came of it, as the plain answer has it."""

    event: Annotated[Literal["result"], Meta(description="always `result`")]
    notes: Annotated[list[str], Meta(description="the lines of `Peakline-Notes`")]


class CaptureErrorEvent(Struct):
    """The last line where it failed after it had begun: the facts of the problem document."""

    event: Annotated[Literal["error"], Meta(description="always `error`")]
    status: Annotated[int, Meta(ge=400, le=599, description="the HTTP status of the plain answer")]
    code: Annotated[str, Meta(description="the name of the gRPC status", examples=["UNAVAILABLE"])]
    detail: Annotated[str, Meta(description="what, where, what to do: one line")]


class FigureKindDocument(Struct):
    """A figure that is drawn of a profile."""

    name: Annotated[str, Meta(description="its name in requests", examples=["memory_over_time"])]
    doc: Annotated[str, Meta(description="what it shows")]
    parameters: Annotated[dict[str, Any], Meta(description="the JSON schema of its own parameters")]


class FigureDocument(Struct):
    """A figure as Plotly reads it."""

    data: Annotated[list[dict[str, Any]], Meta(description="the traces")]
    layout: Annotated[
        dict[str, Any],
        Meta(description="the layout; `meta.description` says in words what is to be seen"),
    ]
