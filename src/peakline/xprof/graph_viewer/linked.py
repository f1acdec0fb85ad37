"""A program as XLA holds it: instructions tied to operands, users and what they call.

Which instructions XLA draws around one goes by ``MakeNodeRadiusAroundFilter`` of
``hlo_graph_dumper.cc``, the names beside one by ``GetAdjacentNodes`` of
``hlo_proto_to_graph_view.cc``.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from peakline.errors import NotFoundError, UsageError
from peakline.hlo.printing.outline import called, local
from peakline.hlo.printing.quoting import sound_name

if TYPE_CHECKING:
    from peakline.schema import HloComputationProto, HloInstructionProto, HloModuleProto


_ELEMENT = "get-tuple-element"


def adjacent_nodes(module: HloModuleProto, name: str) -> bytes:
    """What an instruction uses and what uses it, where XProf looks through instructions whose name
    says that they are elements of tuples.

    Raises UsageError without a name and for a computation, NotFoundError for an unknown name.
    """
    if not name:
        raise UsageError("node_name should not be empty")
    computation, made = find_instruction(module, name)
    if made is None or computation is None:
        if any(sound_name(one.name).lower() == name.lower() for one in module.computations):
            raise UsageError("graph_viewer: XProf has no nodes beside a computation")
        raise NotFoundError(f"no instruction and no computation {name!r}").quoting(repr(name))
    names = {local(one.id): sound_name(one.name) for one in computation.instructions}
    operands = {
        local(one.id): [local(number) for number in one.operand_ids]
        for one in computation.instructions
    }
    users: dict[int, list[int]] = {}
    for user, used in operands.items():
        for operand in dict.fromkeys(used):
            users.setdefault(operand, []).append(user)
    start = local(made.id)
    result = {
        "consumer_names": _beyond(start, users, names),
        "operand_names": _beyond(start, operands, names),
    }
    return json.dumps(result, separators=(",", ":"), ensure_ascii=False).encode()


def find_instruction(
    module: HloModuleProto, name: str
) -> tuple[HloComputationProto | None, HloInstructionProto | None]:
    """The first instruction of a name, whatever its case, with ``%`` before it or not."""
    wanted = name.removeprefix("%").lower()
    for computation in sorted(module.computations, key=lambda one: one.id):
        for made in computation.instructions:
            if sound_name(made.name).lower() == wanted:
                return computation, made
    return None, None


def _beyond(start: int, near: Mapping[int, Sequence[int]], names: Mapping[int, str]) -> list[str]:
    result = []
    waiting = [iter(near.get(start, ()))]
    while waiting:
        number = next(waiting[-1], None)
        if number is None:
            waiting.pop()
        elif names.get(number, "").startswith(_ELEMENT):
            waiting.append(iter(near.get(number, ())))
        else:
            result.append(names.get(number, ""))
    return result


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
        result = self._states.get(made)
        if result is not None:
            return result
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


class Computation:
    """A computation; ``fusion`` is the last instruction that fuses it, ``callers`` are all that
    call it.
    """

    __slots__ = ("callers", "fusion", "made", "name", "proto", "root")

    def __init__(self, proto: HloComputationProto) -> None:
        self.proto = proto
        self.name = sound_name(proto.name)
        self.made: list[Instruction] = []
        self.callers: list[Instruction] = []
        self.fusion: Instruction | None = None
        self.root: Instruction


class Instruction:
    """An instruction; of its users each is there once."""

    __slots__ = ("calls", "controls", "name", "opcode", "operands", "parent", "proto", "users")

    def __init__(self, proto: HloInstructionProto, parent: Computation) -> None:
        self.proto = proto
        self.parent = parent
        self.name = sound_name(proto.name)
        self.opcode: str = proto.opcode
        self.operands: list[Instruction] = []
        self.controls: list[Instruction] = []
        self.users: list[Instruction] = []
        self.calls: list[Computation] = []

    @property
    def fused_by(self) -> Instruction | None:
        """The fusion that it is part of."""
        return self.parent.fusion


def link(module: HloModuleProto) -> list[Computation]:
    """The computations in the order of their ids; the program must be one that XLA takes."""
    by_id = {one.id: Computation(one) for one in module.computations}
    for computation in by_id.values():
        made = {
            local(one.id): Instruction(one, computation) for one in computation.proto.instructions
        }
        computation.made = list(made.values())
        computation.root = made[local(computation.proto.root_id)]
        for each in computation.made:
            each.operands = [made[local(number)] for number in each.proto.operand_ids]
            for operand in dict.fromkeys(each.operands):
                operand.users.append(each)
            each.controls = [made[local(number)] for number in each.proto.control_predecessor_ids]
            each.calls = [by_id[number] for number in called(each.proto)]
            for callee in each.calls:
                callee.callers.append(each)
                if each.opcode == "fusion":
                    callee.fusion = each
    return [by_id[number] for number in sorted(by_id)]
