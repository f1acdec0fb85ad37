"""What of a graph was recorded: when a node's executions ended, and what stands behind nodes that
never were.

A loop runs a node very often, and between two recorded nodes there may be very many that are not:
what was found once is found again without going the same way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from peakline.errors import InputError
from peakline.graph.step_graph import Node, StepGraph, Wait

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
        while (found := self._rightmost(at, latest_start)) >= 0:
            if self.runs[found] not in seen:
                break
            self._remove(found)
        return found

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
        found: list[Wait] = []
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
                found.append(wait)
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
                    found.append(_through(wait, node, moved, tensor))
        return found

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
        found: dict[Node, _Found] = {}
        for behind, wait in parts.values():
            self._steps.take(len(behind))
            moves = _moves(wait)
            for one in behind:
                node, moved, tensor = one
                if node not in found:
                    found[node] = (node, moved or moves, tensor or wait.tensor) if moves else one
        return list(found.values())


def _moves(wait: Wait) -> bool:
    return wait.why == "transfer"


def _through(wait: Wait, node: Node, moved: bool, tensor: str) -> Wait:
    """The wait for what stands behind ``wait``'s node."""
    return Wait(node, "transfer" if moved else wait.why, tensor or wait.tensor)
