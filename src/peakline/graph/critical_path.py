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

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peakline.errors import NotFoundError
from peakline.graph.step_graph import Node, StepGraph, Wait
from peakline.tables import Profile
from peakline.tables.columns import Columns
from peakline.trace.steps import steps_of

_TRANSFER = re.compile(r"(?:\[[^\]]*\] )*+(.*) from \S+ to \S+", re.DOTALL)
"""The label of a remote call: sizes and rates in brackets, then which tensor goes where."""


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
        listed = ", ".join(str(number) for number in known[:20]) or "none"
        raise NotFoundError(f"no step {step!r} with executions; there is: {listed}")
    if not chosen:
        return None
    number = chosen[-1]
    return StepRuns(number, names.get(number) or "", runs.take(ids == number))


def critical_path(profile: Profile, step: StepRuns) -> CriticalPath:
    """The critical path of a step."""
    graph = StepGraph(profile, step.name)
    return _Search(step.runs, graph).path(step.step_id, step.name)


@dataclass(frozen=True)
class _Release:
    """The execution that released another."""

    run: int
    why: str
    tensor: str


class _Search:
    """The executions of one step, by node and in order of the end of their computation."""

    def __init__(self, runs: Columns, graph: StepGraph) -> None:
        self._runs, self._graph = runs, graph
        self._start: list[int] = runs.array("start_ps").tolist()
        end = runs.array("start_ps") + runs.array("duration_ps")
        self._end: list[int] = end.tolist()
        computed = runs.is_valid("compute_ps") & runs.is_valid("compute_start_ps")
        done = np.where(computed, runs.array("compute_start_ps") + runs.array("compute_ps"), end)
        self._done: list[int] = np.minimum(done, end).tolist()
        ready = np.where(
            runs.is_valid("scheduled_ps"), runs.array("scheduled_ps"), runs.array("start_ps")
        )
        self._ready: list[int] = np.minimum(ready, runs.array("start_ps")).tolist()
        self._device = [device or "" for device in runs.names("device").to_list()]
        self._name = [name or "" for name in runs.names("name").to_list()]
        self._kind = runs.names("kind").to_list()
        self._label = runs.names("label").to_list()
        self._of_node: dict[Node, list[int]] = {}
        self._of_name: dict[str, list[int]] = {}
        self._tensor_of_call: dict[int, str] = {}
        self._calls: dict[Node, list[int]] = {}
        self._of_stream: dict[str, list[int]] = {}
        for run in sorted(range(runs.rows), key=lambda run: (self._done[run], self._start[run])):
            kind, device, name = self._kind[run], self._device[run], self._name[run]
            if kind == "executor":
                self._of_node.setdefault((device, name), []).append(run)
                self._of_name.setdefault(name, []).append(run)
            elif kind == "rpc":
                found = _TRANSFER.fullmatch(self._label[run] or "")
                tensor = self._tensor_of_call[run] = found[1] if found else ""
                self._calls.setdefault((device, tensor), []).append(run)
            else:
                self._of_stream.setdefault(device, []).append(run)
        self._seen: set[int] = set()

    def path(self, step_id: int, step_name: str) -> CriticalPath:
        """The path that ends with the execution that ended last."""
        last = max(range(self._runs.rows), key=lambda run: (self._end[run], self._start[run]))
        chain: list[_Release] = []
        found: _Release | None = _Release(last, "start", "")
        while found is not None:
            self._seen.add(found.run)
            chain.append(found)
            found = self._before(found.run)
        start = min(self._start)
        whys = [("start", ""), *((one.why, one.tensor) for one in chain[:0:-1])]
        runs = [one.run for one in reversed(chain)]
        return CriticalPath(
            step_id, step_name, start, self._end[last], tuple(self._pieces(runs, whys, start))
        )

    def _pieces(
        self, runs: list[int], whys: list[tuple[str, str]], start: int
    ) -> Iterator[PathPiece]:
        row = self._runs
        op_types, ids = row.names("op_type"), row.array("op_run_id")
        free = start
        for at, run in enumerate(runs):
            begin = max(free, self._start[run])
            end = self._end[run]
            if at + 1 < len(runs):
                # What comes next may begin before this one's bookkeeping ends, and a transfer
                # may have been requested before there was anything to send.
                after = self._start[runs[at + 1]]
                if self._kind[runs[at + 1]] == "rpc":
                    after = max(after, self._done[run])
                end = max(begin, min(end, after))
            queued = begin - max(free, min(self._ready[run], begin))
            yield PathPiece(
                op_run_id=int(ids[run]),
                device=self._device[run],
                name=self._name[run],
                op_type=op_types[run] or "",
                kind=self._kind[run] or "",
                start_ps=self._start[run],
                duration_ps=self._end[run] - self._start[run],
                begin_ps=begin,
                busy_ps=end - begin,
                wait_ps=begin - free,
                queued_ps=queued,
                why=whys[at][0],
                tensor=whys[at][1],
            )
            free = end

    def _before(self, run: int) -> _Release | None:
        """The execution that released ``run``; None for the first of the path."""
        if self._kind[run] == "rpc":
            return self._sender(run)
        if self._kind[run] != "executor":
            return self._launch(run)
        node = (self._device[run], self._name[run])
        waits = self._graph.before(node, self._label[run])
        # Some runtimes write no time of readiness, or one that is too early.
        return self._latest(waits, self._ready[run], run) or self._latest(
            waits, self._start[run], run
        )

    def _latest(self, waits: list[Wait], limit: int, run: int) -> _Release | None:
        """Of all that ``waits`` name, what was computed last by ``limit``."""
        best: _Release | None = None
        looked_at: set[Node] = set()
        stack = list(waits)
        while stack:
            wait = stack.pop()
            if wait.node in looked_at:
                continue
            looked_at.add(wait.node)
            found = self._runs_of(wait.node)
            if not found:
                # Never recorded, such as a receive: what it waits for itself.
                for further in self._graph.before(wait.node, None):
                    if further.why == "source":
                        continue
                    moved = "transfer" in {wait.why, further.why}
                    why = "transfer" if moved else wait.why
                    stack.append(Wait(further.node, why, further.tensor or wait.tensor))
                continue
            at = self._last_by(found, limit, run)
            if at is not None and (best is None or self._done[at] > self._done[best.run]):
                best = _Release(at, wait.why, wait.tensor)
        if best is not None and best.tensor and self._kind[run] != "rpc":
            return self._call(best, limit, run) or best
        return best

    def _runs_of(self, node: Node) -> list[int]:
        return self._of_node.get(node) or ([] if node[0] else self._of_name.get(node[1], []))

    def _last_by(self, runs: list[int], limit: int, before: int) -> int | None:
        """The last of ``runs`` that was computed by ``limit`` and is not on the path yet."""
        at = bisect_right(runs, limit, key=lambda run: self._done[run])
        while at > 0:
            at -= 1
            run = runs[at]
            if run not in self._seen and (
                self._start[run] <= self._start[before] or self._kind[before] == "rpc"
            ):
                return run
        return None

    def _call(self, release: _Release, limit: int, run: int) -> _Release | None:
        """The remote call that brought the tensor to the device of ``run``, if it was recorded."""
        calls = self._calls.get((self._device[run], release.tensor), [])
        at = bisect_right(calls, limit, key=lambda call: self._done[call]) - 1
        if at < 0 or calls[at] in self._seen:
            return None
        return _Release(calls[at], release.why, release.tensor)

    def _sender(self, call: int) -> _Release | None:
        """What computed the tensor that a remote call brought."""
        waits = self._graph.sent(self._tensor_of_call[call])
        return self._latest(waits, self._end[call], call)

    def _launch(self, kernel: int) -> _Release | None:
        """The launch of a kernel by its node, or the kernel before it on its stream."""
        name = self._name[kernel].partition(":")[0]
        launch = max(
            (run for run in self._of_name.get(name, ()) if self._start[run] <= self._start[kernel]),
            key=lambda run: self._start[run],
            default=None,
        )
        stream = self._of_stream[self._device[kernel]]
        before = self._last_by(stream, self._start[kernel], kernel)
        if before is not None and (launch is None or self._end[before] > self._start[launch]):
            return _Release(before, "stream", "")
        return None if launch is None or launch in self._seen else _Release(launch, "launch", "")
