"""The critical path of a step: the chain of executions that its end waited for.

From the execution that ended last, go to the one that released it: of all executions of the
nodes before it, the one whose computation ended last before it became ready
(``scheduled_*`` of step_stats.proto). A node in a loop runs several times; the same rule finds
the iteration. Pieces of the path follow one another without overlap, so what it was busy and
what it waited add up to the step's time.

A node's outputs go on as soon as its computation ends, before its own bookkeeping does: the
next execution may begin before ``all_end``, and the piece then ends there. On an accelerator,
a kernel follows the launch by its node, or the kernel before it on the same stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peakline.errors import NotFoundError
from peakline.graph.releases import Releases
from peakline.graph.step_graph import StepGraph
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.tables.columns import Columns
from peakline.trace.steps import steps_of


@dataclass(frozen=True)
class PathPiece:
    """One execution on the path; times in picoseconds.

    The path is busy with it for ``busy_ps`` from ``begin_ps`` on, after waiting ``wait_ps``
    since the piece before it; for the last ``queued_ps`` of the waiting it was ready to run.
    ``why`` it came after the piece before: data, control, transfer (from another device),
    source (it has no inputs), launch (a kernel after its node), stream (after the kernel before
    it), or start for the first one. ``tensor`` is what was transferred.
    """

    op_run_id: int
    device: str
    name: str
    op_type: str
    kind: str
    start_ps: int
    duration_ps: int
    begin_ps: int
    busy_ps: int
    wait_ps: int
    queued_ps: int
    why: str
    tensor: str

    def as_json(self) -> dict[str, object]:
        """The document."""
        return dict(vars(self))


@dataclass(frozen=True)
class CriticalPath:
    """The pieces in order of time; ``busy_ps + wait_ps == end_ps - start_ps``."""

    step_id: int
    step_name: str
    start_ps: int
    end_ps: int
    pieces: tuple[PathPiece, ...]

    @property
    def busy_ps(self) -> int:
        """How long the path was busy."""
        return sum(piece.busy_ps for piece in self.pieces)

    @property
    def wait_ps(self) -> int:
        """How long the path waited."""
        return sum(piece.wait_ps for piece in self.pieces)

    def as_json(self) -> dict[str, object]:
        """The document."""
        return {
            "step_id": self.step_id,
            "step_name": self.step_name,
            "start_ps": self.start_ps,
            "end_ps": self.end_ps,
            "busy_ps": self.busy_ps,
            "wait_ps": self.wait_ps,
            "pieces": [piece.as_json() for piece in self.pieces],
        }


@dataclass(frozen=True)
class StepRuns:
    """A step and its executions (rows of ``op_runs`` without duplicates)."""

    step_id: int
    name: str
    runs: Columns


def step_runs(profile: Profile, step: str | None = None) -> StepRuns | None:
    """The executions of a step, by its id or name (default: the last step that has any).

    None when nothing was executed. Raises NotFoundError for an unknown step.
    """
    steps = steps_of(profile)
    names = dict(zip(steps.step_id.tolist(), steps.name.to_list(), strict=True))
    runs = profile.columns_or_empty("op_runs")
    runs = runs.take(~runs.array("is_duplicate").astype(np.bool_))
    ids = np.where(runs.is_valid("step_id"), runs.array("step_id"), -1)
    known = np.unique(ids).tolist()
    chosen = known if step is None else [number for number in known if step == str(number)]
    # A name may be a number, too.
    chosen = chosen or [number for number in known if step == names.get(number)]
    if step is not None and not chosen:
        labels = list(map(str, known))
        raise NotFoundError(f"no step {step!r} with executions{there_is(step, labels)}")
    if not chosen:
        return None
    number = chosen[-1]
    return StepRuns(number, names.get(number) or "", runs.take(ids == number))


def critical_path(profile: Profile, step: StepRuns) -> CriticalPath:
    """The critical path of a step.

    Raises InputError where very many nodes of the graph wait for very many others each.
    """
    result = Releases(step.runs, StepGraph(profile, step.name))
    chain = result.chain()
    start = min(result.start)
    whys = [("start", ""), *((one.why, one.tensor) for one in chain[:0:-1])]
    runs = [one.run for one in reversed(chain)]
    pieces = tuple(_pieces(step.runs, result, runs, whys, start))
    return CriticalPath(step.step_id, step.name, start, result.end[runs[-1]], pieces)


def _pieces(
    table: Columns, result: Releases, runs: list[int], whys: list[tuple[str, str]], start: int
) -> Iterator[PathPiece]:
    op_types, ids = table.names("op_type"), table.array("op_run_id")
    free = start
    for at, run in enumerate(runs):
        begin = max(free, result.start[run])
        end = result.end[run]
        if at + 1 < len(runs):
            # What comes next may begin before this one's bookkeeping ends, and a transfer
            # may have been requested before there was anything to send.
            after = result.start[runs[at + 1]]
            if result.kind[runs[at + 1]] == "rpc":
                after = max(after, result.done[run])
            end = max(begin, min(end, after))
        queued = begin - max(free, min(result.ready[run], begin))
        yield PathPiece(
            op_run_id=int(ids[run]),
            device=result.device[run],
            name=result.name[run],
            op_type=op_types[run] or "",
            kind=result.kind[run] or "",
            start_ps=result.start[run],
            duration_ps=result.end[run] - result.start[run],
            begin_ps=begin,
            busy_ps=end - begin,
            wait_ps=begin - free,
            queued_ps=queued,
            why=whys[at][0],
            tensor=whys[at][1],
        )
        free = end
