"""Which execution released another: the rules of `peakline.graph.critical_path`, one step back.

A loop runs a node very often, and between two recorded nodes there may be very many that are not:
what was found once is found again without going the same way.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from peakline.errors import InputError
from peakline.graph.step_graph import Node, StepGraph, Wait
from peakline.tables.columns import Columns

ANY_START = 1 << 64
_GONE = 1 << 65
_FREE_STEPS = 1_000_000
_WALKED = 4
"""How many steps it counts for to go through a node among some that wait for themselves."""


class Steps:
    """How many steps a search may take: so many for each thing that there is.

    What programs write takes one or two.
    """

    def __init__(self, runs: int, graph: StepGraph) -> None:
        self._left = _FREE_STEPS + 20 * (runs + graph.nodes) + 4 * graph.edges

    def take(self, count: int) -> None:
        """Raise InputError where there are no more."""
        self._left -= count
        if self._left < 0:
            raise InputError(
                "no critical path of this step is looked for: very many of its nodes wait for "
                "very many others each"
            )


class Ended:
    """Executions in order of the end of their computation (``done``), to find the last ones."""

    def __init__(self, runs: list[int], done: list[int], start: list[int]) -> None:
        self.runs, self._start = runs, start
        self._done = [done[run] for run in runs]
        # A tree of the least start among neighbours; what is gone has none. It is there once the
        # last one was not the one that was wanted.
        self._least: list[int] = []

    def last(self, limit: int, latest_start: int, seen: set[int]) -> int:
        """The place in ``runs`` of the last that was done by ``limit``, began by ``latest_start``,
        and was not ``seen``; -1 for none. What was seen once is seen for ever.
        """
        at = bisect_right(self._done, limit) - 1
        if at < 0:
            return -1
        run = self.runs[at]
        if run not in seen and self._start[run] <= latest_start:
            return at
        self._least = self._least or self._tree()
        while (result := self._rightmost(at, latest_start)) >= 0:
            if self.runs[result] not in seen:
                break
            self._remove(result)
        return result

    def _tree(self) -> list[int]:
        # More leaves than executions, so that the end of all is inside, too.
        leaves = 1 << len(self.runs).bit_length()
        least = [_GONE] * (2 * leaves)
        least[leaves : leaves + len(self.runs)] = [self._start[run] for run in self.runs]
        for at in range(leaves - 1, 0, -1):
            least[at] = min(least[2 * at], least[2 * at + 1])
        return least

    def _rightmost(self, end: int, latest_start: int) -> int:
        """The last place before ``end`` with a start that is no later; -1 for none."""
        least = self._least
        leaves = len(least) // 2
        at = end + leaves
        while at > 1 and not (at & 1 and least[at - 1] <= latest_start):
            at >>= 1
        if at <= 1:
            return -1
        at -= 1
        while at < leaves:
            at = 2 * at + 1 if least[2 * at + 1] <= latest_start else 2 * at
        return at - leaves

    def _remove(self, place: int) -> None:
        least = self._least
        at = place + len(least) // 2
        least[at] = _GONE
        while at > 1:
            at >>= 1
            least[at] = min(least[2 * at], least[2 * at + 1])


_Found = tuple[Node, bool, str]
"""A recorded node, whether a tensor was transferred on the way to it, and the last such tensor."""


class Behind:
    """Finds the recorded nodes that others wait for, through nodes that were not recorded."""

    def __init__(self, graph: StepGraph, is_recorded: Callable[[Node], bool], steps: Steps) -> None:
        self._graph, self._is_recorded, self._steps = graph, is_recorded, steps
        # None for a node that waits for itself, or for one that does.
        self._known: dict[Node, list[_Found] | None] = {}

    def recorded(self, waits: Iterable[Wait]) -> list[Wait]:
        """Each once, in the order of a walk into the depth that begins with the last wait."""
        result: list[Wait] = []
        looked_at: set[Node] = set()
        joined: set[int] = set()
        stack = list(waits)
        self._steps.take(len(stack))
        while stack:
            wait = stack.pop()
            if wait.node in looked_at:
                continue
            looked_at.add(wait.node)
            if self._is_recorded(wait.node):
                result.append(wait)
                continue
            behind = self._behind(wait.node)
            if behind is None:
                further = self._further(wait.node)
                self._steps.take(_WALKED * len(further))
                stack += [_through(wait, one.node, _moves(one), one.tensor) for one in further]
                continue
            if id(behind) in joined:
                continue
            joined.add(id(behind))
            self._steps.take(len(behind))
            for node, moved, tensor in behind:
                if node not in looked_at:
                    looked_at.add(node)
                    result.append(_through(wait, node, moved, tensor))
        return result

    def _further(self, node: Node) -> list[Wait]:
        return [wait for wait in self._graph.before(node, None) if wait.why != "source"]

    def _behind(self, first: Node) -> list[_Found] | None:
        """What is recorded behind a node that is not; None where nodes wait for themselves."""
        known = self._known
        if first in known:
            return known[first]
        # Each with the nodes before it that are still to be looked at.
        path = [(first, *self._unknown(first))]
        on_path = {first}
        while path:
            node, waits, left = path[-1]
            after = next((one for one in left if one not in known and one not in on_path), None)
            if after is not None:
                on_path.add(after)
                path.append((after, *self._unknown(after)))
                continue
            known[node] = self._joined(waits)
            on_path.remove(node)
            path.pop()
        return known[first]

    def _unknown(self, node: Node) -> tuple[list[Wait], Iterable[Node]]:
        waits = self._further(node)
        self._steps.take(len(waits))
        return waits, iter([one.node for one in waits if not self._is_recorded(one.node)])

    def _joined(self, waits: list[Wait]) -> list[_Found] | None:
        parts: dict[int, tuple[list[_Found], Wait]] = {}
        looked_at: set[Node] = set()
        for wait in reversed(waits):
            if wait.node in looked_at:
                continue
            looked_at.add(wait.node)
            if self._is_recorded(wait.node):
                behind: list[_Found] | None = [(wait.node, False, "")]
            else:
                # What is still on the way is not known: these nodes wait for themselves.
                behind = self._known.get(wait.node)
            if behind is None:
                return None
            parts.setdefault(id(behind), (behind, wait))
        if len(parts) == 1:
            behind, wait = next(iter(parts.values()))
            if not _moves(wait):
                # Very many nodes in a row share what is behind the last.
                return behind
        result: dict[Node, _Found] = {}
        for behind, wait in parts.values():
            self._steps.take(len(behind))
            moves = _moves(wait)
            for one in behind:
                node, moved, tensor = one
                if node not in result:
                    result[node] = (node, moved or moves, tensor or wait.tensor) if moves else one
        return list(result.values())


def _moves(wait: Wait) -> bool:
    return wait.why == "transfer"


def _through(wait: Wait, node: Node, moved: bool, tensor: str) -> Wait:
    """The wait for what stands behind ``wait``'s node."""
    return Wait(node, "transfer" if moved else wait.why, tensor or wait.tensor)


_TRANSFER = re.compile(r"(?:\[[^\]]*\] )*+(.*) from \S+ to \S+", re.DOTALL)
"""The label of a remote call: sizes and rates in brackets, then which tensor goes where."""

_MANY = 16
"""So many nodes are worth to be looked at together."""


@dataclass(frozen=True)
class Release:
    """The execution that released another."""

    run: int
    why: str
    tensor: str


@dataclass
class _Ahead:
    """The recorded nodes that one waits for: ``waits`` in the order in which they are looked at.

    ``spent`` is how often that was done one by one, ``runs`` how many executions they have, and
    ``together`` is all of these with the number of each one's wait, once that takes less.
    """

    waits: list[Wait]
    runs: int
    spent: int = 0
    together: tuple[Ended, list[int]] | None = None


class Releases:
    """The executions of one step, by node and in order of the end of their computation."""

    def __init__(self, runs: Columns, graph: StepGraph) -> None:
        self._graph = graph
        self.start: list[int] = runs.array("start_ps").tolist()
        end = runs.array("start_ps") + runs.array("duration_ps")
        self.end: list[int] = end.tolist()
        computed = runs.is_valid("compute_ps") & runs.is_valid("compute_start_ps")
        done = np.where(computed, runs.array("compute_start_ps") + runs.array("compute_ps"), end)
        self.done: list[int] = np.minimum(done, end).tolist()
        ready = np.where(
            runs.is_valid("scheduled_ps"), runs.array("scheduled_ps"), runs.array("start_ps")
        )
        self.ready: list[int] = np.minimum(ready, runs.array("start_ps")).tolist()
        self.device = [device or "" for device in runs.names("device").to_list()]
        self.name = [name or "" for name in runs.names("name").to_list()]
        self.kind = runs.names("kind").to_list()
        self._label = runs.names("label").to_list()
        self._of_node: dict[Node, list[int]] = {}
        self._of_name: dict[str, list[int]] = {}
        self._tensor_of_call: dict[int, str] = {}
        self._calls: dict[Node, list[int]] = {}
        self._of_stream: dict[str, list[int]] = {}
        for run in sorted(range(runs.rows), key=lambda run: (self.done[run], self.start[run])):
            kind, device, name = self.kind[run], self.device[run], self.name[run]
            if kind == "executor":
                self._of_node.setdefault((device, name), []).append(run)
                self._of_name.setdefault(name, []).append(run)
            elif kind == "rpc":
                result = _TRANSFER.fullmatch(self._label[run] or "")
                tensor = self._tensor_of_call[run] = result[1] if result else ""
                self._calls.setdefault((device, tensor), []).append(run)
            else:
                self._of_stream.setdefault(device, []).append(run)
        self._ended: dict[int, Ended] = {}
        self._launches: dict[str, tuple[list[int], list[int]]] = {}
        self._ahead: dict[tuple[Node, str | None], _Ahead] = {}
        self._senders: dict[str, _Ahead] = {}
        self._steps = Steps(runs.rows, graph)
        self._behind = Behind(graph, lambda node: bool(self._runs_of(node)), self._steps)
        self._seen: set[int] = set()

    def chain(self) -> list[Release]:
        """From the execution that ended last back to the first of the path.

        Raises InputError where the graph is such that this would take too long.
        """
        last = max(range(len(self.end)), key=lambda run: (self.end[run], self.start[run]))
        chain: list[Release] = []
        result: Release | None = Release(last, "start", "")
        while result is not None:
            self._seen.add(result.run)
            chain.append(result)
            result = self._before(result.run)
        return chain

    def _before(self, run: int) -> Release | None:
        """The execution that released ``run``; None for the first of the path."""
        if self.kind[run] == "rpc":
            return self._sender(run)
        if self.kind[run] != "executor":
            return self._launch(run)
        node = (self.device[run], self.name[run])
        label = None if self._graph.has(node) else self._label[run]
        ahead = self._ahead.get((node, label))
        if ahead is None:
            waits = self._graph.before(node, label)
            ahead = self._ahead[node, label] = self._ahead_of(waits)
        # Some runtimes write no time of readiness, or one that is too early.
        return self._latest(ahead, self.ready[run], run) or self._latest(
            ahead, self.start[run], run
        )

    def _ahead_of(self, waits: list[Wait]) -> _Ahead:
        recorded = self._behind.recorded(waits)
        return _Ahead(recorded, sum(len(self._runs_of(wait.node)) for wait in recorded))

    def _latest(self, ahead: _Ahead, limit: int, run: int) -> Release | None:
        """Of all that are ``ahead``, what was computed last by ``limit``."""
        start = ANY_START if self.kind[run] == "rpc" else self.start[run]
        if ahead.together is None and len(ahead.waits) > _MANY and ahead.spent > ahead.runs:
            ahead.together = self._joined(ahead)
        best: Release | None = None
        if ahead.together is not None:
            ended, numbers = ahead.together
            place = ended.last(limit, start, self._seen)
            if place >= 0:
                wait = ahead.waits[numbers[place]]
                best = Release(ended.runs[place], wait.why, wait.tensor)
        else:
            self._steps.take(len(ahead.waits))
            ahead.spent += len(ahead.waits)
            for wait in ahead.waits:
                at = self._last_by(self._runs_of(wait.node), limit, start)
                if at is not None and (best is None or self.done[at] > self.done[best.run]):
                    best = Release(at, wait.why, wait.tensor)
        if best is not None and best.tensor and self.kind[run] != "rpc":
            return self._call(best, limit, run) or best
        return best

    def _joined(self, ahead: _Ahead) -> tuple[Ended, list[int]]:
        """All executions: of those that were done at one time the first wait's come last."""
        self._steps.take(ahead.runs)
        pairs = [
            (run, number)
            for number in range(len(ahead.waits) - 1, -1, -1)
            for run in self._runs_of(ahead.waits[number].node)
        ]
        pairs.sort(key=lambda pair: self.done[pair[0]])
        ended = Ended([run for run, _ in pairs], self.done, self.start)
        return ended, [number for _, number in pairs]

    def _runs_of(self, node: Node) -> list[int]:
        return self._of_node.get(node) or ([] if node[0] else self._of_name.get(node[1], []))

    def _last_by(self, runs: list[int], limit: int, latest_start: int) -> int | None:
        """The last of ``runs``, a node's or a stream's, that was computed by ``limit``, began by
        ``latest_start`` and is not on the path yet.
        """
        ended = self._ended.get(id(runs))
        if ended is None:
            ended = self._ended[id(runs)] = Ended(runs, self.done, self.start)
        place = ended.last(limit, latest_start, self._seen)
        return runs[place] if place >= 0 else None

    def _call(self, release: Release, limit: int, run: int) -> Release | None:
        """The remote call that brought the tensor to the device of ``run``, if it was recorded."""
        calls = self._calls.get((self.device[run], release.tensor), [])
        at = bisect_right(calls, limit, key=lambda call: self.done[call]) - 1
        if at < 0 or calls[at] in self._seen:
            return None
        return Release(calls[at], release.why, release.tensor)

    def _sender(self, call: int) -> Release | None:
        """What computed the tensor that a remote call brought."""
        tensor = self._tensor_of_call[call]
        if tensor not in self._senders:
            self._senders[tensor] = self._ahead_of(self._graph.sent(tensor))
        return self._latest(self._senders[tensor], self.end[call], call)

    def _launch(self, kernel: int) -> Release | None:
        """The launch of a kernel by its node, or the kernel before it on its stream."""
        launch = self._launched(self.name[kernel].partition(":")[0], self.start[kernel])
        stream = self._of_stream[self.device[kernel]]
        start = self.start[kernel]
        before = self._last_by(stream, start, start)
        if before is not None and (launch is None or self.end[before] > self.start[launch]):
            return Release(before, "stream", "")
        return None if launch is None or launch in self._seen else Release(launch, "launch", "")

    def _launched(self, name: str, limit: int) -> int | None:
        """The execution of this name that began last by ``limit``: of several the one whose
        computation ended first.
        """
        if name not in self._launches:
            runs = sorted(self._of_name.get(name, ()), key=lambda run: self.start[run])
            self._launches[name] = runs, [self.start[run] for run in runs]
        runs, starts = self._launches[name]
        at = bisect_right(starts, limit) - 1
        return runs[bisect_left(starts, starts[at])] if at >= 0 else None
