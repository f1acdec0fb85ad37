"""Which instructions XLA draws around one (``MakeNodeRadiusAroundFilter`` of
``hlo_graph_dumper.cc``).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.xprof.graph_viewer.linked import Instruction

NORMAL, HIDDEN, HIGHLIGHTED = "normal", "hidden", "highlighted"
SOME_OPERANDS, NO_OPERANDS, SOME_USERS = "some operands", "no operands", "some users"
_MOST_USERS = 16


class Shown:
    """What is drawn, and how; without a node everything."""

    def __init__(self, node: Instruction | None = None, radius: int = 0) -> None:
        self._node = node
        self._states = _around(node, radius) if node is not None else {}

    def state(self, made: Instruction) -> str:
        """How an instruction is drawn."""
        if self._node is None:
            return NORMAL
        found = self._states.get(made)
        if found is not None:
            return found
        return HIDDEN if made.parent is self._node.parent or _is_passed(made) else NORMAL

    def shows(self, made: Instruction) -> bool:
        """Whether an instruction is drawn."""
        return self.state(made) != HIDDEN


def _around(node: Instruction, radius: int) -> dict[Instruction, str]:
    states: dict[Instruction, str] = {}
    depths: dict[Instruction, int] = {}
    waiting = deque([(node, 0)])
    while waiting:
        made, depth = waiting.popleft()
        states[made] = HIDDEN if _is_passed(made) else NORMAL
        if depth == radius:
            continue
        is_new = depth < depths.get(made, radius + 1)
        depths[made] = min(depth, depths.get(made, depth))
        if is_new and (made is node or made.opcode != "tuple"):
            for operand in made.operands:
                if operand not in states:
                    is_bitcast = "bitcast" in (operand.opcode, made.opcode)
                    waiting.append((operand, depth if is_bitcast else depth + 1))
        if is_new:
            waiting.extend((callee.root, depth + 1) for callee in made.calls)
        if made.opcode == "constant":
            continue
        if len(made.users) > _MOST_USERS:
            states[made] = SOME_USERS
        elif is_new:
            waiting.extend((user, depth + 1) for user in made.users if user not in states)
    return _marked(node, states)


def _marked(node: Instruction, states: dict[Instruction, str]) -> dict[Instruction, str]:
    """The same with what is left out of operands and users."""

    def is_drawn(made: Instruction) -> bool:
        return made in states or made.opcode == "constant" or made.parent is not node.parent

    marked: dict[Instruction, str] = {}
    for made, given in states.items():
        state, drawn = given, [is_drawn(operand) for operand in made.operands]
        if any(drawn) and not all(drawn):
            state = SOME_OPERANDS
        elif drawn and not any(drawn):
            state = NO_OPERANDS
        if state == SOME_USERS and all(map(is_drawn, made.users)):
            state = NORMAL
        marked[made] = state
    return marked | {node: HIGHLIGHTED}


def _is_passed(made: Instruction) -> bool:
    """Whether a parameter only passes through a fusion of asynchronous collectives of TPUs."""
    fusion = made.fused_by
    if made.opcode != "parameter" or fusion is None or len(made.users) != 1:
        return False
    operand = fusion.operands[made.proto.parameter_number]
    if operand.opcode != "get-tuple-element" or operand.operands[0].opcode != "fusion":
        return False
    source = operand.operands[0].calls[0]
    name, user = "async_collective_fusion", made.users[0]
    return (
        made.parent.name.startswith(name)
        and _calls(source.root, "AsyncCollectiveStart")
        and user is made.parent.root
    ) or (_calls(user, "AsyncCollectiveDone") and source.name.startswith(name))


def _calls(made: Instruction, target: str) -> bool:
    return made.opcode == "custom-call" and made.proto.custom_call_target == target
