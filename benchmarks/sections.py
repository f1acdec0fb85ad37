"""What the results page says about each part: its subject, how it was measured, its tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inputs import LARGE, LARGEST
from limits import pick

from tables import figures, mb, number, table


@dataclass(frozen=True)
class Section:
    """One part's title, what a reader must know, and the tables of what it measured."""

    title: str
    about: str
    tables: Callable[[Any], list[str]]


def _compared(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Both programs' time and memory, and how many times less ours are."""
    return [
        number(ours["wall_s"], "{:.2f} s"),
        number(theirs["wall_s"], "{:.2f} s"),
        f"{theirs['wall_s'] / ours['wall_s']:.1f}",
        mb(ours["peak_bytes"]),
        mb(theirs["peak_bytes"]),
        f"{theirs['peak_bytes'] / ours['peak_bytes']:.1f}",
    ]


_BOTH = [
    "Peakline time", "its time", "times faster", "Peakline memory", "its memory", "times less",
]  # fmt: skip
_RUNS = ["runs", "wall", "least", "most", "CPU", "peak memory"]


def _runs(row: dict[str, Any]) -> list[str]:
    """What the columns `_RUNS` say of one row."""
    times = [number(row[key], "{:,.3f} s") for key in ("wall_s", "wall_least_s", "wall_most_s")]
    return [str(row["runs"]), *times, number(row["cpu_s"], "{:,.3f} s"), mb(row["peak_bytes"])]


def _files(measured: Any) -> list[str]:
    rows, against = measured["rows"], []
    for row in rows:
        request = {"file": row["file"], "command": row["command"]}
        ours = pick(rows, **request, program="Peakline")
        if ours is not None and row["program"] != "Peakline":
            against.append([*request.values(), row["program"], *_compared(ours, row)])
    every = [
        [
            f"{row['file']}, {row['bytes']:,} bytes",
            f"`{row['command']}`" if row["program"] == "Peakline" else row["command"],
            row["program"],
            *_runs(row),
        ]
        for row in rows
    ]
    return [
        *table(["file", "question", "against"], _BOTH, against),
        "",
        *([measured["too_large"], ""] if measured["too_large"] else []),
        *table(["file", "command", "program"], _RUNS, every),
    ]


def _install(measured: Any) -> list[str]:
    size = f"An installation takes {measured['megabytes']:,} MB."
    rows = [[f"`{row['command']}`", *_runs(row)] for row in measured["rows"]]
    return [size, "", *table([f"command, file of {measured['file']}"], _RUNS, rows)]


def _programs(measured: Any) -> list[str]:
    theirs = pick(measured, program="XProf")
    against = [
        [row["file"], f"`{row['command']}`", *_compared(row, theirs)]
        for row in measured
        if theirs is not None and row["program"] == "Peakline"
    ]
    every = [[row["file"], f"`{row['command']}`", row["program"], *_runs(row)] for row in measured]
    return [
        *table(["program", "question, against XProf's memory_viewer"], _BOTH, against),
        "",
        *table(["program", "question", "by"], _RUNS, every),
    ]


def _replay(measured: Any) -> list[str]:
    rows = [
        [
            f"{row['what']}, {row['events']:,} events",
            str(len(row["seconds"])),
            number(statistics.median(row["seconds"]), "{:.2f} s"),
            number(min(row["seconds"]), "{:.2f} s"),
            number(max(row["seconds"]), "{:.2f} s"),
            mb(row["bytes"]),
        ]
        for row in measured
    ]
    return table(["what"], ["runs", "median", "least", "most", "memory"], rows)


def _lifetimes(measured: Any) -> list[str]:
    seconds = measured["seconds"]
    row = {
        "what": f"{measured['activities']:,} activities",
        "program": "Peakline",
        "unit": "s",
        "runs": len(seconds),
        "median": statistics.median(seconds),
        "least": min(seconds),
        "most": max(seconds),
    }
    return figures([row], "what")


def _time(measured: Any) -> list[str]:
    against, growth = [], []
    for row in measured:
        request = {"file": row["file"], "tool": row["tool"]}
        theirs = pick(measured, **request, program="XProf")
        name = row["tool"] + row["program"].removeprefix("Peakline")
        if theirs is not None and row["program"] != "XProf":
            against.append([row["file"], name, *_compared(row, theirs)])
    for row in measured:
        smaller = pick(measured, file=LARGE, tool=row["tool"], program="Peakline")
        if smaller is not None and row["file"] == LARGEST:
            growth.append(
                [
                    row["tool"],
                    f"{smaller['bytes']:,} bytes",
                    f"{row['bytes']:,} bytes",
                    f"{row['bytes'] / smaller['bytes']:.1f}",
                    number(smaller["wall_s"], "{:.2f} s"),
                    number(row["wall_s"], "{:.2f} s"),
                    f"{row['wall_s'] / smaller['wall_s']:.1f}",
                ]
            )
    every = [[row["file"], row["tool"], row["program"], *_runs(row)] for row in measured]
    header = ["from", "to", "times larger", "time", "time of the larger", "times longer"]
    return [
        *table(["file", "tool"], _BOTH, against),
        "",
        *([*table(["tool, Peakline"], header, growth), ""] if growth else []),
        *table(["file", "tool", "program"], _RUNS, every),
    ]


def _load(measured: Any) -> list[str]:
    rows = [
        [
            row["program"],
            f"{row['answers']:,} in {row['seconds']:,.0f} s",
            number(row["answers_per_s"], "{:,.1f}"),
            *(number(100 * row[key] / row["answers"], "{:.2f} %") for key in ("refused", "failed")),
            *(number(row[f"{key}_s"], "{:,.2f} s") for key in ("median", "p99", "worst")),
            " → ".join(map(mb, row["memory_bytes"])),
            " → ".join(map(str, row["threads"])),
        ]
        for row in measured["rows"]
    ]
    header = ["answers", "right a second", "refused", "failed", "median", "99 %", "worst"]
    clients = f"{measured['rows'][0]['clients']} clients"
    return table([clients], [*header, "memory", "threads"], rows)


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


_FACTS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("events", "events", "{:,}".format),
    ("tracks", "lanes", "{:,}".format),
    ("read_s", "reading the events", _seconds),
    ("nest_s", "nesting them", _seconds),
    ("build_s", "making the index", _seconds),
    ("index_bytes", "memory of the index", mb),
    ("search_s", "a search in all names", _seconds),
    ("search_hits", "events that it finds", "{:,}".format),
)


def _timeline(measured: Any) -> list[str]:
    facts = [[what, form(measured[key])] for key, what, form in _FACTS if key in measured]
    tiles = [
        [
            f"{width} pixels",
            *(
                number(result.get(f"{key}_ms"), "{:.2f} ms")
                for key in ("p50", "p95", "max", "whole")
            ),
            number(result.get("whole_items"), "{:,}"),
        ]
        for width, result in measured["tiles"].items()
    ]
    if http := measured.get("http"):
        times = [number(http[f"{key}_ms"], "{:.2f} ms") for key in ("p50", "p95", "max")]
        place = f"{http['width']} pixels over HTTP, at most {http['max_bytes']:,} bytes"
        tiles.append([place, *times, number(None), number(None)])
    header = ["median", "95th percentile", "most", "the whole profile", "items of that"]
    return [
        *table([f"{measured['file']}, {measured['bytes']:,} bytes"], ["measured"], facts),
        "",
        *table(["tiles"], header, tiles),
    ]


def _hosts(measured: Any) -> list[str]:
    request = f"`{measured['tool']}` of {measured['hosts']} hosts, {mb(measured['bytes'])}"
    return table([request], _RUNS, [[row["executor"], *_runs(row)] for row in measured["rows"]])


def _jobs(measured: Any) -> list[str]:
    rows = [[f"{row['what']}: {row['program']}", *_runs(row)] for row in measured["rows"]]
    return table(["the answer about a job"], _RUNS, rows)


def _page(measured: Any) -> list[str]:
    return [
        f"{measured['file']}, {measured['bytes']:,} bytes. Browser: {measured['browser']}.",
        "",
        *figures(measured["rows"], "what"),
    ]


SECTIONS = {
    "files": Section(
        "Files",
        "A real profile of a Keras training run and its repetitions in time"
        " (`benchmarks/scale.py`), and real logs and steps repeated (`benchmarks/formats.py`, which"
        " holds both programs of each question). A figure is the median over fresh processes,"
        " measured from start to exit, the programs taking turns: five times, or three where a run"
        " takes more than 30 s, but for XProf's memory_profile; exports once. Memory is the peak of"
        " resident pages, pages of mapped files included. In every comparison both programs'"
        " answers were checked to agree. Compared are"
        ' `peakline.open(FILE).tool("memory_profile")` in a new Python process, `peakline memory'
        " FILE`, `summary`, `steps`, `report` and `export` likewise, `sql` of the number and the"
        " time of the events of every name, and of XProf"
        " `xspace_to_tool_data([FILE], 'memory_profile', {})` and `query_events_db`.",
        _files,
    ),
    "install": Section(
        "Installation",
        "The wheel, installed by pip with all it needs into a new environment"
        " (`benchmarks/installed.py`): what `du -sm` says of its `site-packages` without pip and"
        " setuptools. First runs take turns with later ones, the wheel being installed anew before"
        " each; pip writes the bytecode, and the files are in the system's cache.",
        _install,
    ),
    "lifetimes": Section(
        "Lifetimes",
        "Allocations matched with deallocations, on one core (`benchmarks/lifetimes.py`).",
        _lifetimes,
    ),
    "replay": Section(
        "Replay",
        "Recorded allocations replayed by models of allocators, and the search for all limits that"
        " fit, whole MiB, on one core (`benchmarks/replay.py`): sizes and lifetimes at random, some"
        " hundred buffers live at a time. Memory is beyond that of the imports, the requests"
        " included.",
        _replay,
    ),
    "programs": Section(
        "Programs",
        "A compiled program of 100 MB, a real training step many times over"
        " (`benchmarks/repeat_program.py`), whole processes taking turns"
        " (`benchmarks/programs.py`): `peakline programs FILE`, the tool `memory_viewer`, and"
        " XProf's memory_viewer of the same"
        " file. Both memory viewers gave the same peak.",
        _programs,
    ),
    "service": Section(
        "Service",
        "`peakline serve` and XProf's server, asked by one client process on the same cores"
        " (`benchmarks/service.py`). EnumSessions' first list ends after 10 s with the tools known"
        " by then.",
        lambda measured: figures(measured, "question"),
    ),
    "load": Section(
        "Load",
        "Many clients at once, one request in flight each, of servers with their default options"
        " (`benchmarks/load.py`): four tools of four sessions of 20 MB, by XProf's URLs. Programs"
        " take turns, and one process asks on the same cores. Refused is what was answered with 429"
        " or 503 (RESOURCE_EXHAUSTED, UNAVAILABLE), failed what had another error, or no answer"
        " within 300 s. Memory and threads are the most in the first and in the second half.",
        _load,
    ),
    "time": Section(
        "Time",
        "The tools of time, whole processes taking turns, five times or three where a run takes"
        " more than 30 s; of 3 GiB twice or once. XProf's answers were compared with ours with"
        " `compatible=xprof`, which ran once (`benchmarks/time_tools.py`). trace_viewer@ is the"
        " first answer, 8000 pixels; the timeline's first tile is that of the whole profile."
        " XProf's trace viewer keeps 300 MB of tables beside the file of 386 MB.",
        _time,
    ),
    "timeline": Section(
        "Timeline",
        "The index of the timeline and tiles of random viewports, in the process and from a warm"
        " server (`benchmarks/timeline.py`). In the process their lengths are from a nanosecond to"
        " the whole, over HTTP from a thousandth of the whole to the whole.",
        _timeline,
    ),
    "hosts": Section(
        "Many hosts",
        "A question to a session of many hosts, whole `peakline tool` runs, by what works"
        " (`benchmarks/hosts.py`). Memory is that of the asking process; workers are not in it.",
        _hosts,
    ),
    "jobs": Section(
        "Jobs",
        "The answer about all ranks of a job, whole `peakline DIR` runs with two workers"
        " (`benchmarks/jobs.py`): hosts of 164 kB each, and PyTorch traces beside the load of the"
        " same by Holistic Trace Analysis, whose analyses come after it. AMD's TraceLens is not on"
        " PyPI. CPU is that of all processes, memory that of the largest.",
        _jobs,
    ),
    "page": Section(
        "Page",
        "The page's timeline beside XProf's trace viewer, in Chromium without a GPU, a cold server"
        " and a new browser each time, the file in the system's cache (`benchmarks/page.py`)."
        " Memory counts shared pages by their share (PSS). A zoom until nothing more is drawn is"
        " from a key, the same for both, to the last call that draws on a canvas; motion that"
        " goes on after the picture is complete counts. Zoom to drawn, random zooms and moves until"
        " the picture is complete, was measured in Peakline alone.",
        _page,
    ),
    "views": Section(
        "Views",
        "First pictures of the page's other views, from the navigation, in Chromium without a GPU,"
        " a new browser each time; cold is a server that has answered nothing yet, warm the same"
        " once more (`benchmarks/views.py`). XProf's graph is the neighbourhood of one instruction,"
        " and its time ends when the text of the graph is there, before its layout: the script that"
        " draws it comes from another host, which the browser cannot reach here. It opens no"
        " GraphDef.",
        lambda measured: figures(measured, "what"),
    ),
}
