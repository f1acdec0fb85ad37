"""The names beside an instruction (``GetAdjacentNodes`` of ``hlo_proto_to_graph_view.cc``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from peakline.errors import NotFoundError, UsageError
from peakline.hlo.printing.outline import local
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
    found = {
        "consumer_names": _beyond(start, users, names),
        "operand_names": _beyond(start, operands, names),
    }
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()


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
    found = []
    waiting = [iter(near.get(start, ()))]
    while waiting:
        number = next(waiting[-1], None)
        if number is None:
            waiting.pop()
        elif names.get(number, "").startswith(_ELEMENT):
            waiting.append(iter(near.get(number, ())))
        else:
            found.append(names.get(number, ""))
    return found
