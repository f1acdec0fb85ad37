"""The order in which XLA writes the instructions of a computation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
        found = [places[local(number)] for number in scheduled if local(number) in places]
    else:
        found = _post_order(made, places, _channels(made) if with_channels else {})
    if len(found) != len(made):
        found = list(dict.fromkeys([*found, *range(len(made))]))
    return [made[place] for place in found]


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
    made: Sequence[HloInstructionProto],
    places: dict[int, int],
    channels: dict[int, int | None],
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
