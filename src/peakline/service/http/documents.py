"""The JSON documents that come and go, as pydantic models: checked, and described for callers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from peakline.service.http.parameters import NAME, OPTIONAL_NAME

__all__ = [
    "CaptureBody",
    "CaptureDocument",
    "HealthDocument",
    "HostOutcomeDocument",
    "SessionDocument",
    "SqlBody",
    "ToolDocument",
]


class HealthDocument(BaseModel):
    """The server answers."""

    status: Literal["ok"] = Field(description="always `ok`")


class SessionDocument(BaseModel):
    """A session: the same document as of `peakline sessions --json`."""

    session_id: str = Field(description="the session's id", examples=["2026_11_20_17_04_52"])
    hosts: list[str] = Field(description="the hosts that have a profile", examples=[["worker-0"]])
    tools: list[str] = Field(
        description="the tools that have something to show for a host",
        examples=[["memory_profile", "trace_viewer"]],
    )


class ToolDocument(BaseModel):
    """A tool of this server."""

    name: str = Field(description="what it is asked for by", examples=["memory_profile"])
    doc: str = Field(description="what it shows")
    formats: list[str] = Field(description="the default first", examples=[["json", "proto"]])
    parameters: dict[str, Any] = Field(description="the JSON schema of its parameters")


class SqlBody(BaseModel):
    """A query over the tables of one host's profile."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(
        min_length=1,
        description="one SELECT statement; GET .../tables lists the tables",
        examples=["select op, sum(allocated_bytes) as bytes from buffers group by op limit 10"],
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
    address: str = Field(description="where its profiler was asked")
    state: Literal["stored", "saved_by_host", "empty", "failed"] = Field(
        description="`saved_by_host`: on a disk that it shares with this server; `empty`: nothing "
        "was recorded, and nothing is kept"
    )
    size: int = Field(ge=0, description="bytes of its profile")
    error: str = Field(description="what went wrong, one line; empty when nothing did")
    attempts: int = Field(ge=0, description="how often it was asked")


class CaptureDocument(BaseModel):
    """What came of a capture."""

    session_id: str = Field(description="the session's id", json_schema_extra=NAME)
    empty_trace: bool = Field(description="no host recorded anything; there is no session then")
    outcomes: list[HostOutcomeDocument] = Field(description="one for every host asked")
