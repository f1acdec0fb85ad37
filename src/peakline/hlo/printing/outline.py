"""What is known of all computations of a program before the first is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.hlo.printing.order import called
from peakline.hlo.printing.quoting import sound_name

if TYPE_CHECKING:
    from peakline.schema import HloComputationProto

MAIN_THREAD = "main"


@dataclass(frozen=True)
class Threads:
    """On which thread each computation runs, main where nothing is said; ``forced`` are those
    whose asynchronous instructions run on the same one.
    """

    names: Mapping[int, str]
    forced: AbstractSet[int]

    def of(self, number: int) -> str:
        """The thread of a computation."""
        return self.names.get(number, MAIN_THREAD)


class Outline:
    """Names, calls and threads of the computations, from one pass over their messages.

    ``ids`` are in their order; ``names`` and ``places`` by id: of several computations with one id
    the last counts.
    """

    def __init__(self, computations: Sequence[HloComputationProto]) -> None:
        self._computations = computations
        self.names: dict[int, str] = {}
        self.places: dict[int, int] = {}
        self.ids: list[int] = []
        self._calls: dict[int, list[list[int]]] = {}
        """What each instruction that calls something calls, by computation."""
        self._threads: dict[int, str] = {}
        self._starts: list[tuple[int, str]] = []
        self._started: set[int] = set()
        for place, one in enumerate(computations):
            self._add(place, one)

    def _add(self, place: int, one: HloComputationProto) -> None:
        number = one.id
        self.ids.append(number)
        self.names[number] = sound_name(one.name)
        self.places[number] = place
        if one.execution_thread:
            self._threads[number] = one.execution_thread
        self._calls.pop(number, None)
        calls = []
        for made in one.instructions:
            ids = made.called_computation_ids
            if not ids:
                continue
            if called(made):
                calls.append(list(ids))
            if made.opcode == "async-start":
                self._started.update(ids)
                self._starts.append((ids[0], made.async_execution_thread or MAIN_THREAD))
        if calls:
            self._calls[number] = calls

    def in_order(self) -> list[int]:
        """The places of the computations, callees first (``HloModule::MakeComputationPostOrder``).

        Those that nothing outside a circle of calls reaches come last.
        """
        ids = sorted(self.places)
        inner = {callee for groups in self._calls.values() for group in groups for callee in group}
        seen: set[int] = set()
        order: list[int] = []
        for root in [*(number for number in ids if number not in inner), *ids]:
            if root not in seen:
                seen.add(root)
                order.extend(self._below(root, seen))
        return [self.places[number] for number in order]

    def _below(self, root: int, seen: set[int]) -> Iterator[int]:
        waiting = [(root, iter(self._calls.get(root, ())))]
        while waiting:
            number, groups = waiting[-1]
            group = next(groups, None)
            if group is None:
                waiting.pop()
                yield number
                continue
            for callee in reversed(group):
                if callee not in seen and callee in self.places:
                    seen.add(callee)
                    waiting.append((callee, iter(self._calls.get(callee, ()))))

    def written_inline(self) -> list[HloComputationProto]:
        """Computations of one instruction that asynchronous ones stand for."""
        found = (
            self._computations[place]
            for place, number in enumerate(self.ids)
            if number in self._started
        )
        return [one for one in found if _is_single(one)]

    def threads(self) -> Threads:
        """The threads of the computations.

        What an asynchronous instruction calls, and what that calls, runs on the thread of the
        instruction; of nested ones the outermost decides, because XLA reads it last.
        """
        names = dict(self._threads)
        forced: set[int] = set()
        for first, thread in reversed(self._starts):
            waiting = [first]
            while waiting:
                number = waiting.pop()
                if number not in forced and number in self.places:
                    forced.add(number)
                    names[number] = thread
                    for group in self._calls.get(number, ()):
                        waiting.extend(group)
        return Threads(names, forced)


def _is_single(one: HloComputationProto) -> bool:
    """Whether a computation is one instruction and its parameters."""
    roots = [made for made in one.instructions if made.opcode != "parameter"] or one.instructions
    return any(made.id == one.root_id for made in one.instructions) and all(
        made.id == one.root_id or made.opcode == "parameter" for made in roots
    )
