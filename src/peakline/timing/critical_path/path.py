"""The critical path of a step: the chain of work, launches and waits that its end waited for.

From the end of the step backwards: what ran last, what it waited for longest, and so on to the
step's begin. What a piece of work waited for is known from

- the graph that ran (StepStats with graphs; see `peakline.graph.critical_path`),
- the compiled program (HLO): the operands of an instruction, and for the end of an asynchronous one
  (``copy-done``, ``all-reduce-done``) the transfer that its begin had started,
- the order of a device's stream, and the launch by a thread of the host,
- on the host: the order of a thread, contexts handed from one thread to another, and for a thread
  that blocks the work that ended last before it went on.

Of several the one that came last counts: without the others the step would have been no shorter.
docs/critical-path.md has the rules and where they can be wrong.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from peakline.errors import NotFoundError
from peakline.graph.critical_path import CriticalPath, critical_path, step_runs
from peakline.shown import Brief, Shown, Tabular, several, table_of
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.text import counted, time_text
from peakline.timing.critical_path.walk import Walk
from peakline.trace.device_lines import Device, devices_of
from peakline.trace.events import HOST, Trace, read_with_steps, trace_of
from peakline.trace.steps import steps_of
from peakline.trace.windows import markers_of, windows_of

if TYPE_CHECKING:
    import pyarrow as pa

MOST_NEAR = 20
"""Pieces beside the path that are given, those with the least slack."""


@dataclass(frozen=True, repr=False)
class Piece(Brief):
    """A piece of the path; times in picoseconds.

    ``kind`` is op (work of a device or an execution), transfer (asynchronous, until it was waited
    for), launch (from the call until the work began), host, input (a thread requested its next
    batch), wait (a thread blocked, and nothing says by what). ``why`` it came after the piece
    before it: data, control, order (of the stream), transfer, launch, thread (the same one),
    context (handed over by another thread), release (the thread blocked until then), guess, or
    another word of the graph's path; start for the first. The path did nothing for ``wait_ps``
    before it. ``event`` and ``line`` are its places in the trace, -1 if it has none: of a launch
    those of the call, while ``place`` is where the work began.
    ``slack_ps`` is None where it is not known how long it could last without the step lasting
    longer; see `NearPiece`.
    """

    name: str
    kind: str
    place: str
    why: str
    begin_ps: int
    end_ps: int
    wait_ps: int
    event: int = -1
    line: int = -1
    slack_ps: int | None = None

    @property
    def busy_ps(self) -> int:
        """How long the path was here."""
        return self.end_ps - self.begin_ps


@dataclass(frozen=True, repr=False)
class NearPiece(Brief):
    """Work of the device beside the path, and how much longer it could have lasted.

    By its ``slack_ps``, with everything after it moved on as far as the observed gaps allow, the
    device's last work would have ended no later. ``event`` and ``line`` are places in the trace.
    """

    name: str
    place: str
    begin_ps: int
    end_ps: int
    slack_ps: int
    event: int
    line: int


@dataclass(frozen=True, repr=False)
class StepPath(Shown, Tabular):
    """A critical path: pieces in order of time, which do not overlap.

    ``step`` is the step's name, or its id as text where it has none; empty without steps.
    ``source`` is graph, hlo (instructions of compiled programs decided), or links. ``start_ps`` to
    ``end_ps`` is the step's window, or with no steps the device's time. ``guesses`` counts the
    pieces that were chosen without a link, ``is_cut`` says that the path was longer than is given.
    """

    step: str
    device: str | None
    source: str
    start_ps: int
    end_ps: int
    pieces: tuple[Piece, ...]
    near: tuple[NearPiece, ...] = ()
    guesses: int = 0
    is_cut: bool = False
    step_id: int | None = None

    def __post_init__(self) -> None:
        several(self, "pieces", "near")

    @property
    def busy_ps(self) -> int:
        """How long the pieces are together."""
        return sum(piece.busy_ps for piece in self.pieces)

    @property
    def explained(self) -> float:
        """The share of the window that pieces explain which are no blind waits; 0 to 1."""
        known = sum(piece.busy_ps for piece in self.pieces if piece.kind != "wait")
        return known / (self.end_ps - self.start_ps) if self.end_ps > self.start_ps else 0.0

    def by_name(self) -> list[tuple[str, str, int]]:
        """Kind, name and time of everything on the path, the longest first."""
        result: Counter[tuple[str, str]] = Counter()
        for piece in self.pieces:
            result[piece.kind, piece.name] += piece.busy_ps
        ordered = sorted(result.items(), key=lambda item: (-item[1], item[0]))
        return [(*key, total) for key, total in ordered]

    def by_kind(self) -> dict[str, int]:
        """The time of each kind of piece."""
        result: Counter[str] = Counter()
        for piece in self.pieces:
            result[piece.kind] += piece.busy_ps
        return dict(result)

    def to_arrow(self) -> pa.Table:
        """The pieces in order of time, their fields as columns."""
        return table_of([vars(piece) | {"busy_ps": piece.busy_ps} for piece in self.pieces])

    def _headline(self) -> str:
        of = f"step {self.step}, " if self.step else ""
        pieces = counted(len(self.pieces), "piece")
        return f"{of}{time_text(self.end_ps - self.start_ps)} in {pieces}"


def median_step(profile: Profile, device: str | None = None) -> str | None:
    """The id, as text, of the step that takes the median time: of an even number the shorter one.

    A step takes as long as its longest window, of ``device`` where that is named. None where no
    step takes time. Raises InputError when the profile cannot be read.
    """
    longest: dict[int, int] = {}
    for windows in windows_of(profile):
        if device is None or (windows.device is not None and windows.device.name == device):
            for row, took in zip(
                windows.step.tolist(), (windows.end - windows.begin).tolist(), strict=True
            ):
                longest[row] = max(took, longest.get(row, 0))
    took = sorted((took, row) for row, took in longest.items() if took)
    if not took:
        return None
    _, row = took[(len(took) - 1) // 2]
    return str(int(steps_of(profile).step_id[row]))


def critical_path_of(
    profile: Profile, step: str | None = None, device: str | None = None
) -> StepPath | None:
    """The critical path of a step, by its id or name (default: the last one).

    ``device`` names one (default: the first whose window of the step ends last). Without steps the
    path is that of all the device did. None where nothing ran at a time. Guesses, a path that was
    cut and a step without work count in warnings. Raises NotFoundError for an unknown step or
    device, InputError when the profile cannot be read.
    """
    read_with_steps(profile)
    trace = trace_of(profile)
    if trace.source == "op_runs":
        return _of_graph(profile, step)
    result = _window(profile, trace, step, device)
    if result is None:
        return None
    name, step_id, chosen, begin, end, line = result
    walk = Walk(profile, chosen, line, begin, end)
    raw = walk.run()
    if not raw:
        return None
    pieces = _forward([Piece(*one) for one in raw], begin)
    slack = walk.slack()
    on_path = {piece.event for piece in pieces}
    pieces = [replace(piece, slack_ps=slack.get(piece.event)) for piece in pieces]
    if walk.guesses:
        profile.warn(
            "critical_path_guess",
            "pieces of a critical path that no link of the profile shows",
            walk.guesses,
            once=True,
        )
    if walk.is_cut:
        profile.warn("critical_path_cut", "critical paths with too many pieces", once=True)
    return StepPath(
        name, None if chosen is None else chosen.name, walk.source(), begin, end,
        tuple(pieces), _near(trace, walk, slack, on_path), walk.guesses, walk.is_cut, step_id,
    )  # fmt: skip


def _forward(backward: list[Piece], begin: int) -> list[Piece]:
    """In order of time: neighbours that are the same are one, and each has what it waited."""
    pieces: list[Piece] = []
    free = begin
    for piece in reversed(backward):
        last = pieces[-1] if pieces else None
        if (
            last is not None
            and (last.name, last.kind, last.event) == (piece.name, piece.kind, piece.event)
            and last.line == piece.line
            and last.end_ps == piece.begin_ps
            and piece.kind in ("host", "wait", "input")
        ):
            pieces[-1] = replace(last, end_ps=piece.end_ps)
        else:
            why = "start" if last is None else piece.why
            pieces.append(replace(piece, why=why, wait_ps=piece.begin_ps - free))
        free = piece.end_ps
    return pieces


def _near(
    trace: Trace, walk: Walk, slack: dict[int, int], on_path: set[int]
) -> tuple[NearPiece, ...]:
    beside = sorted(
        (own, -(int(trace.end[event]) - int(trace.start[event])), event)
        for event, own in slack.items()
        if event not in on_path
    )[:MOST_NEAR]
    lines = trace.lines_of(np.array([event for *_, event in beside], np.int64)).tolist()
    return tuple(
        NearPiece(
            walk.title(event), trace.lines[line].name,
            int(trace.start[event]), int(trace.end[event]), own, event, line,
        )
        for (own, _, event), line in zip(beside, lines, strict=True)
    )  # fmt: skip


Window = tuple[str, int | None, Device | None, int, int, int]
"""The step's name and id, the device, begin and end, and the host's thread's line (-1: none)."""


def _window(profile: Profile, trace: Trace, step: str | None, device: str | None) -> Window | None:
    devices = devices_of(profile)
    if device is not None and device not in {one.name for one in devices}:
        known = [one.name for one in devices]
        raise NotFoundError(f"no device {device!r} with work{there_is(device, known)}")
    windows = [
        one
        for one in windows_of(profile)
        if device is None or (one.device is not None and one.device.name == device)
    ]
    if not any(one.step.size for one in windows):
        if step is not None:
            raise NotFoundError(f"no step {step!r}: the profile has no steps")
        return _whole(trace, devices, device)
    steps = steps_of(profile)
    rows = sorted({int(row) for one in windows for row in one.step})
    if step is not None:
        wanted = steps.find(step)
        rows = [row for row in rows if steps.step_id[row] == wanted]
        if not rows:
            raise NotFoundError(f"no step {step!r} on device {device!r}")
    row = max(rows, key=lambda row: (int(steps.begin[row]), row))
    chosen = None
    for one in windows:
        for at in np.flatnonzero(one.step == row).tolist():
            end = int(one.end[at])
            if end > int(one.begin[at]) and (chosen is None or end > chosen[4]):
                line = int(markers_of(profile).line[row])
                on_host = line >= 0 and trace.planes[trace.lines[line].plane].kind == HOST
                chosen = (
                    steps.label(row), int(steps.step_id[row]), one.device,
                    int(one.begin[at]), end, line if on_host else -1,
                )  # fmt: skip
    if chosen is None:
        profile.warn("critical_path_empty", "a step that took no time has no path", once=True)
    return chosen


def _whole(trace: Trace, devices: tuple[Device, ...], device: str | None) -> Window | None:
    """All that a device did, or the host where there is none."""
    best: Window | None = None
    for one in devices:
        if device not in (None, one.name):
            continue
        lines = [trace.lines[number] for number, _ in one.lines]
        begin = min(int(trace.start[line.first]) for line in lines)
        end = max(int(trace.end[line.events].max()) for line in lines)
        if best is None or end > best[4]:
            best = "", None, one, begin, end, -1
    if best is None:
        busiest = max(
            ((line.last - line.first, -number) for number, line in enumerate(trace.lines)
             if trace.planes[line.plane].kind == HOST and line.last > line.first),
            default=None,
        )  # fmt: skip
        if busiest is None:
            return None
        line = trace.lines[-busiest[1]]
        begin, end = int(trace.start[line.first]), int(trace.end[line.events].max())
        best = "", None, None, begin, end, -busiest[1]
    return best if best[4] > best[3] else None


def _of_graph(profile: Profile, step: str | None) -> StepPath | None:
    runs = step_runs(profile, step)
    return None if runs is None else _in_graph_terms(profile, critical_path(profile, runs))


def _in_graph_terms(profile: Profile, path: CriticalPath) -> StepPath:
    """The graph's path in the words of this one."""
    trace = trace_of(profile)
    ids = profile.columns("op_runs", frozenset(("op_run_id",))).array("op_run_id").tolist()
    row_of = {number: row for row, number in enumerate(ids)}
    rows = np.array([row_of[one.op_run_id] for one in path.pieces], np.int64)
    places = trace.places(rows)
    pieces = tuple(
        Piece(
            one.name, "transfer" if one.kind == "rpc" else "op", one.device, one.why,
            one.begin_ps, one.begin_ps + one.busy_ps, one.wait_ps, event, line,
        )
        for one, event, line in zip(
            path.pieces, places.tolist(), trace.lines_of(places).tolist(), strict=True
        )
    )  # fmt: skip
    return StepPath(
        path.step_name or str(path.step_id), None, "graph", path.start_ps, path.end_ps, pieces,
        step_id=path.step_id,
    )  # fmt: skip
