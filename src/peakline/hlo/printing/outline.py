"""What is known of all computations of a program before the first is written, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.hlo.printing.quoting import sound_name

if TYPE_CHECKING:
    from peakline.schema import HloComputationProto, HloInstructionProto


LOW = 0xFFFF_FFFF
"""The part of an id that is the number within the computation."""
_LATER = frozenset(("async-update", "async-done"))
_COLLECTIVES = frozenset(
    """
    all-gather all-reduce all-to-all collective-broadcast collective-permute ragged-all-to-all
    reduce-scatter
    """.split()
)


def local(number: int) -> int:
    """An instruction's number within its computation: newer files put that of the computation
    above it (``HloInstruction::CalculateLocalId``).
    """
    return number & LOW


def called(made: HloInstructionProto) -> Sequence[int]:
    """The ids of the computations that an instruction itself calls; what is left of an
    asynchronous one calls none.
    """
    return () if made.opcode in _LATER else made.called_computation_ids


def instructions_in_order(
    one: HloComputationProto, scheduled: Sequence[int] | None, *, with_channels: bool
) -> list[HloInstructionProto]:
    """The instructions of a computation: as they are scheduled (``scheduled`` are ids), else
    operands first (``HloComputation::ForEachInstructionPostOrder``).

    ``with_channels``: a collective also after earlier ones of its channel. What a damaged schedule
    leaves out comes last.
    """
    made = list(one.instructions)
    places: dict[int, int] = {}
    for place, each in enumerate(made):
        places.setdefault(local(each.id), place)
    if scheduled:
        result = [places[local(number)] for number in scheduled if local(number) in places]
    else:
        result = _post_order(made, places, _channels(made) if with_channels else {})
    if len(result) != len(made):
        result = list(dict.fromkeys([*result, *range(len(made))]))
    return [made[place] for place in result]


def _channels(made: Sequence[HloInstructionProto]) -> dict[int, int | None]:
    """For every collective with a channel the one of the same channel that stands before it."""
    last: dict[int, int] = {}
    before: dict[int, int | None] = {}
    for place, each in enumerate(made):
        channel = each.channel_id or each.all_reduce_id if each.opcode in _COLLECTIVES else 0
        if channel > 0:
            before[place] = last.get(channel)
            last[channel] = place
    return before


_SEEN, _DONE, _ROOT = 1, 2, 3
"""States of an instruction; a root is done, but not what its channel puts before it."""


def _post_order(
    made: Sequence[HloInstructionProto], places: dict[int, int], channels: dict[int, int | None]
) -> list[int]:
    behind, roots = _edges(made, places)
    state = bytearray(len(made))
    order: list[int] = []
    for root in roots:
        waiting = [root]
        while waiting:
            current = waiting[-1]
            if state[current]:
                waiting.pop()
                if state[current] == _SEEN:
                    state[current] = _ROOT if current == root else _DONE
                    order.append(current)
                continue
            state[current] = _SEEN
            if current in channels and current != root:
                earlier = channels[current]
                while earlier is not None and state[earlier] == _ROOT:
                    earlier = channels[earlier]
                if earlier is not None and state[earlier] != _DONE:
                    waiting.append(earlier)
            waiting += [each for each in behind[current] if state[each] < _DONE]
    return order


def _edges(
    made: Sequence[HloInstructionProto], places: dict[int, int]
) -> tuple[list[list[int]], list[int]]:
    """What must stand before each instruction, that which comes first last; and the instructions
    whose results nothing uses.
    """
    behind: list[list[int]] = []
    used = bytearray(len(made))
    for each in made:
        operands = [places[number & LOW] for number in each.operand_ids if number & LOW in places]
        for operand in operands:
            used[operand] = 1
        operands.reverse()
        if each.control_predecessor_ids:
            first = map(local, each.control_predecessor_ids)
            operands += [places[key] for key in first if key in places]
        behind.append(operands)
    return behind, [place for place in range(len(made)) if not used[place]]


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
        result = (
            self._computations[place]
            for place, number in enumerate(self.ids)
            if number in self._started
        )
        return [one for one in result if _is_single(one)]

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
