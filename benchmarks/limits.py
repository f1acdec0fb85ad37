"""The project's own limits, each stated once, and what the measurements say of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from inputs import LARGE, LARGEST, SMALL

from tables import NOTHING

_Value = Callable[[Any], float | None]


@dataclass(frozen=True)
class Limit:
    """One limit of one part.

    ``text`` has ``{}`` where the bound stands. ``value`` takes what the part measured and gives
    the number in ``unit`` that the bound is for, None where that was not measured. It may not
    exceed the bound, or with ``is_least`` not be below it.
    """

    part: str
    text: str
    bound: float
    unit: str
    value: Callable[[Any], float | None]
    is_least: bool = False

    def kept(self, measured: Any) -> bool | None:
        """Whether it is kept; None where that is not known."""
        value = None if measured is None else self.value(measured)
        if value is None:
            return None
        return value >= self.bound if self.is_least else value <= self.bound

    def row(self, measured: Any) -> list[str]:
        """The limit, whether it is kept, and the measured number, in words."""
        chosen = self.kept(measured)
        text = self.text.format(f"{self.bound:g}")
        if chosen is None:
            return [text, "not measured", NOTHING]
        value = self.value(measured)
        return [text, "yes" if chosen else "**no**", f"{value:,.2f} {self.unit}"]


def pick(rows: Sequence[dict[str, Any]], **wanted: object) -> dict[str, Any] | None:
    """The first row that has all these values."""
    return next((row for row in rows if wanted.items() <= row.items()), None)


def _ratio(
    rows: Sequence[dict[str, Any]], key: str, over: dict[str, Any], under: dict[str, Any]
) -> float | None:
    """How many times the figure of one row is that of another."""
    first, second = pick(rows, **over), pick(rows, **under)
    if first is None or second is None or first[key] is None or second[key] is None:
        return None
    ratio: float = first[key] / second[key]
    return ratio


def _than(file: str, command: str, peer: str) -> _Value:
    """How many times what Peakline takes another program takes for a question to a file."""
    request = {"file": file, "command": command}
    return lambda measured: _ratio(
        measured["rows"], "wall_s", request | {"program": peer}, request | {"program": "Peakline"}
    )


def _of_xprof(file: str, key: str) -> _Value:
    """How many times what XProf's memory_profile takes Peakline's takes."""
    request = {"file": file, "command": _MEMORY}
    return lambda measured: _ratio(
        measured["rows"], key, request | {"program": "Peakline"}, request | {"program": "XProf"}
    )


def _took(file: str, command: str, key: str = "wall_s", scale: float = 1) -> _Value:
    """What Peakline takes for a question to a file: seconds or bytes."""

    def value(measured: Any) -> float | None:
        row = pick(measured["rows"], file=file, command=command, program="Peakline")
        return None if row is None else row[key] * scale

    return value


def _log_rate(measured: Any) -> float | None:
    row = pick(measured["rows"], file="memory_400MB.log", program="Peakline")
    return None if row is None else row["bytes"] / 1e6 / row["cpu_s"]


def _graph_memory(measured: Any) -> float | None:
    used = _took("graph_1M.pb", "nodes and inputs by op", "peak_bytes")(measured)
    return None if used is None else used / 2**30


def _findings(measured: Any) -> float | None:
    request = {"file": LARGE, "program": "Peakline"}
    rows = measured["rows"]
    return _ratio(rows, "wall_s", request | {"command": "memory"}, request | {"command": _MEMORY})


def _served(start: str) -> _Value:
    """The median of our row that begins so."""

    def value(measured: Any) -> float | None:
        rows = [row for row in measured if row["program"] == "Peakline"]
        return next((r["median"] for r in rows if r["question"].startswith(start)), None)

    return value


def _tool(tool: str, key: str = "wall_s") -> _Value:
    """How many times what Peakline takes XProf takes for a tool of time."""
    request = {"file": LARGE, "tool": tool}
    return lambda measured: _ratio(
        measured, key, request | {"program": "XProf"}, request | {"program": "Peakline"}
    )


def _program(command: str, key: str, *, less: bool = False) -> _Value:
    """How many times what Peakline takes for a program XProf's memory_viewer takes; or the share
    of it that Peakline takes.
    """
    ours, theirs = {"command": command, "program": "Peakline"}, {"program": "XProf"}
    over, under = (ours, theirs) if less else (theirs, ours)
    return lambda measured: _ratio(measured, key, over, under)


def _growth(**request: str) -> _Value:
    """Time for a byte of the largest file over time for a byte of the large one."""
    ours = request | {"program": "Peakline"}

    def value(measured: Any) -> float | None:
        rows = measured["rows"] if "command" in request else measured
        files = ours | {"file": LARGEST}, ours | {"file": LARGE}
        time, size = _ratio(rows, "wall_s", *files), _ratio(rows, "bytes", *files)
        return None if time is None or size is None else time / size

    return value


def _installed(command: str, over: str, key: str = "wall_s") -> _Value:
    """How many times what one command of a new installation takes another takes."""
    return lambda measured: _ratio(measured["rows"], key, {"command": command}, {"command": over})


def _processor_ms(command: str) -> _Value:
    """What a command's processor time is over that of a Python that does nothing."""

    def value(measured: Any) -> float | None:
        rows = measured["rows"]
        ours, nothing = pick(rows, command=command), pick(rows, command="python -c pass")
        return (
            None if ours is None or nothing is None else 1000 * (ours["cpu_s"] - nothing["cpu_s"])
        )

    return value


def _replayed(place: int) -> _Value:
    """The median of one of the measurements of replays."""
    return lambda measured: statistics.median(measured[place]["seconds"])


def _median(rows: Sequence[dict[str, Any]], what: str) -> float | None:
    """The median of our row that is named so."""
    row = pick(rows, what=what, program="Peakline")
    return None if row is None else row["median"]


def _shown(what: str, scale: float = 1) -> _Value:
    """A figure of the page's timeline, times ``scale``."""

    def value(measured: Any) -> float | None:
        median = _median(measured["rows"], what)
        return None if median is None else median * scale

    return value


def _viewed(what: str) -> _Value:
    """A figure of the page's other views."""
    return lambda measured: _median(measured, what)


def _loaded(key: str) -> _Value:
    """Our worst figure under many clients."""
    return lambda measured: max(row[key] for row in _ours(measured))


def _not_answered(measured: Any) -> float:
    """Per cent of the answers that were refusals or failures."""
    return max(100 * (row["refused"] + row["failed"]) / row["answers"] for row in _ours(measured))


def _growing(measured: Any, key: str) -> float:
    """How many times the first half's figure that of the second is."""
    return max(row[key][1] / row[key][0] for row in _ours(measured))


def _ours(measured: Any) -> list[dict[str, Any]]:
    return [row for row in measured["rows"] if row["program"].startswith("Peakline")]


_MEMORY, _SQL = "memory_profile", "SQL, events by name"
_FASTER = "{} times faster than"
_LATER = "at most {} times as long as a later one"
_AS_LONG = "at most {} times as long as 386 MB"
LIMITS = (
    Limit("files", "1 MB: `memory_profile` at most {} times XProf's time", 2.5, "times",
          _of_xprof(SMALL, "wall_s")),
    Limit("files", f"40 MB: `memory_profile` at least {_FASTER} XProf", 5, "times",
          _than("40 MB", _MEMORY, "XProf"), is_least=True),
    Limit("files", f"386 MB: `memory_profile` at least {_FASTER} XProf", 12, "times",
          _than(LARGE, _MEMORY, "XProf"), is_least=True),
    Limit("files", "386 MB: `memory_profile` at most {} of XProf's memory", 0.08, "times",
          _of_xprof(LARGE, "peak_bytes")),
    Limit("files", f"3 GiB: `memory_profile`, per byte, {_AS_LONG}", 1.25, "times",
          _growth(command=_MEMORY)),
    Limit("files", "386 MB: `peakline summary` at most {} s", 3, "s", _took(LARGE, "summary")),
    Limit("files", "386 MB: `peakline summary` at most {} GB", 0.7, "GB",
          _took(LARGE, "summary", "peak_bytes", 1e-9)),
    Limit("files", "SQL over 10 million events, first answer, at most {} s", 1, "s",
          _took(LARGE, _SQL)),
    Limit("files", f"SQL over 10 million events: at least {_FASTER} XProf's query_events_db", 10,
          "times", _than(LARGE, _SQL, "XProf query_events_db"), is_least=True),
    Limit(
        "files", f"run_metadata_51MB.pb: at least {_FASTER} TensorFlow's timeline", 10, "times",
        _than("run_metadata_51MB.pb", "timeline with memory", "TensorFlow timeline"),
        is_least=True,
    ),
    Limit(
        "files", f"graph_200k.pb: at least {_FASTER} TensorFlow's import_graph_def", 10, "times",
        _than("graph_200k.pb", "nodes and inputs by op", "TensorFlow import_graph_def"),
        is_least=True,
    ),
    Limit(
        "files", f"memory_60MB.log: at least {_FASTER} a loop with text_format", 10, "times",
        _than("memory_60MB.log", "records by message", "text_format loop"), is_least=True,
    ),
    Limit("files", "memory_400MB.log: at least {} MB/s of one core", 100, "MB/s", _log_rate,
          is_least=True),
    Limit("files", "graph_1M.pb: at most {} s", 10, "s",
          _took("graph_1M.pb", "nodes and inputs by op")),
    Limit("files", "graph_1M.pb: at most {} GiB", 4, "GiB", _graph_memory),
    Limit("files", "1 MB: `peakline memory` at most {} s", 1.2, "s", _took(SMALL, "memory")),
    Limit("files", "386 MB: `peakline memory` at most {} times `memory_profile` alone", 2,
          "times", _findings),
    Limit("files", "386 MB: `peakline report` at most {} s", 10, "s", _took(LARGE, "report")),
    *(
        Limit("install", f"1 MB: the first `{command}`, just installed, {_LATER}", 1.3, "times",
              _installed(f"{command}, first run", f"{command}, later run"))
        for command in ("memory_profile", "memory")
    ),
    Limit("install", "the wheel and all it needs: at most {} MB", 350, "MB",
          lambda measured: measured["megabytes"]),
    *(
        Limit("install", f"{what}: at most {{}} ms of processor time over `python -c pass`", 60,
              "ms", _processor_ms(command))
        for what, command in (
            ("`peakline --version`", "peakline --version"),
            ("a usage error", "peakline memory --nope"),
        )
    ),
    Limit("lifetimes", "10 million activities matched in at most {} s on one core", 2, "s",
          lambda measured: statistics.median(measured["seconds"])),
    Limit("replay", "10 million events replayed in at most {} s", 3, "s", _replayed(0)),
    Limit("replay", "10 million events replayed by PyTorch's rules in at most {} s", 3, "s",
          _replayed(1)),
    Limit("replay", "10 million events replayed in at most {} MB", 1000, "MB",
          lambda measured: measured[0]["bytes"] / 1e6),
    Limit("replay", "all limits of a million events in at most {} s", 10, "s", _replayed(2)),
    Limit("replay", "all limits of 10 million events in at most {} s", 90, "s", _replayed(3)),
    *(
        limit
        for command in ("programs", "memory_viewer")
        for limit in (
            Limit(
                "programs", f"program of 100 MB: `{command}` at least {_FASTER} XProf's"
                " memory_viewer", 5, "times", _program(command, "wall_s"), is_least=True,
            ),
            Limit(
                "programs", f"program of 100 MB: `{command}` at most {{}} of the memory of XProf's"
                " memory_viewer", 0.2, "times", _program(command, "peak_bytes", less=True),
            ),
        )
    ),
    Limit("service", "1,000 sessions of 64 hosts listed in at most {} s", 1, "s",
          _served("list 1,000")),
    Limit("service", "EnumSessions of 1,000 sessions, warm, at most {} s", 0.1, "s",
          _served("EnumSessions, 1,000 sessions of 64 hosts, warm")),
    Limit("service", "first answer, 386 MB, at most {} s", 3, "s",
          _served("memory_profile of a new session of 386 MB")),
    Limit("service", "a new server's first answer, 1 MB, at most {} s from when it listens", 1, "s",
          _served("first memory_profile, 1 MB, of a new server, from when it listens")),
    Limit("service", "GetSessionToolData, 1 MB, warm, at least {} a second", 200, "a second",
          _served("GetSessionToolData"), is_least=True),
    Limit("load", "200 clients: at most {} % refused or failed", 1, "%", _not_answered),
    Limit("load", "200 clients: 99 % of the answers within {} s", 300, "s", _loaded("p99_s")),
    Limit("load", "200 clients: memory of the second half at most {} times that of the first", 1.1,
          "times", lambda measured: _growing(measured, "memory_bytes")),
    # gRPC's library has threads of its own, which come and go.
    Limit("load", "200 clients: threads of the second half at most {} times those of the first",
          1.1, "times", lambda measured: _growing(measured, "threads")),
    Limit("time", f"overview_page at least {_FASTER} XProf", 25, "times",
          _tool("overview_page"), is_least=True),
    Limit("time", "overview_page with at least {} times less memory", 10, "times",
          _tool("overview_page", "peak_bytes"), is_least=True),
    Limit("time", f"framework_op_stats at least {_FASTER} XProf", 10, "times",
          _tool("framework_op_stats"), is_least=True),
    Limit("time", f"trace_viewer@, first answer, at least {_FASTER} XProf", 15, "times",
          _tool("trace_viewer@"), is_least=True),
    *(
        Limit("time", f"{tool}: 3 GiB, per byte, {_AS_LONG}", 1.25, "times", _growth(tool=tool))
        for tool in ("overview_page", "framework_op_stats", "trace_viewer@")
    ),
    Limit("timeline", "a tile of 4,000 pixels drawn, 95th percentile, at most {} ms", 30, "ms",
          lambda measured: measured["tiles"]["4000"]["p95_ms"]),
    Limit("timeline", "a tile of 2,000 pixels over HTTP, 95th percentile, at most {} ms", 30,
          "ms", lambda measured: measured.get("http", {}).get("p95_ms")),
    Limit("page", "first view of 386 MB at most {} s", 4, "s",
          _shown("first view of the trace, cold server")),
    Limit("page", "zoom to drawn, 95th percentile, at most {} ms", 100, "ms",
          _shown("zoom to drawn, 95th percentile")),
    Limit("page", "memory of the page's process at most {} MB", 400, "MB",
          _shown("memory of the page's process", 1e-6)),
    Limit("page", "memory of all processes of the browser at most {} MB", 400, "MB",
          _shown("memory of all processes of the browser", 1e-6)),
    Limit("views", "graph of 200,000 nodes, cold, at most {} s", 2, "s",
          _viewed("graph of 200,000 nodes, cold")),
    Limit("views", "first rows of 10,000 sessions, cold, at most {} s", 1, "s",
          _viewed("first rows of 10,000 sessions, cold")),
    Limit("views", "first rows of 10,000 sessions, warm, at most {} s", 0.5, "s",
          _viewed("first rows of 10,000 sessions, warm")),
    Limit("views", "first facts of 386 MB, warm, at most {} s", 1.5, "s",
          _viewed("first facts of 386 MB, warm")),
)  # fmt: skip
