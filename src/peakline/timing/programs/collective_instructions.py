"""What compiled programs say of their collectives: members, bytes, which ends belong together."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from peakline.formats.hlo_proto.shapes import bits_of, width_of
from peakline.formats.hlo_text.shapes import shape_end
from peakline.hlo.printing.devices import replica_groups
from peakline.hlo.program import kind_of, leaves, whole_size_of
from peakline.timing.programs.device import Programs
from peakline.trace.activity_names import kind_of_collective

_BEGIN = re.compile(r"%?(\S+) = ")
_OPCODE = re.compile(r"\s*([a-z][a-z0-9-]*)\(")
_ARRAY = re.compile(r"\b([a-z][a-z0-9]*)\[([\d,<=]*)\]")
_GROUPS = re.compile(r"\breplica_groups=(\{(?:\{[\d,]*\},?)*\}|\[[^\s]*|@?mesh.*?\})")
_IOTA = re.compile(r"\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_OPERAND = re.compile(r"%([^\s,()]+)")
_MOST_MEMBERS = 1 << 20


class CollectiveInstruction(NamedTuple):
    """A collective of a program: its ``name``, its ``kind`` (None where only the name of its event
    says it), and which ``end`` of an asynchronous one it is (``start``, ``done`` or nothing).

    ``starts`` is the instruction that a ``done`` waits for. ``size_bytes`` is as in
    `peakline.timing.collectives.CollectiveRows`, -1 where it is not known, as ``group_size``.
    ``group`` are the members where there is only one group, and are listed; ``is_whole``: there is
    only one.
    """

    name: str
    kind: str | None
    end: str
    starts: str
    size_bytes: int
    data_type: str | None
    group_size: int
    group: tuple[int, ...]
    is_whole: bool


@lru_cache(1 << 12)
def instruction_in(text: str) -> CollectiveInstruction | None:
    """The collective that the text of an instruction is; None where it is no instruction.

    >>> instruction_in("%a.1 = f32[8]{0} all-reduce(f32[8]{0} %b), replica_groups={{0,1}}")[4:8]
    (32, 'f32', 2, (0, 1))
    """
    begin = _BEGIN.match(text)
    if begin is None:
        return None
    data = text.encode()
    try:
        at = shape_end(data, len(begin[0].encode()))
    except ValueError:
        return None
    result, rest = data[len(begin[0].encode()) : at].decode(), data[at:].decode()
    opcode = _OPCODE.match(rest)
    if opcode is None:
        return None
    given, attributes = _within(rest[opcode.end() :])
    of_result, of_given = _sizes(result), _sizes(given)
    starts = _OPERAND.search(given)
    return _made(
        begin[1], opcode[1], starts[1] if starts else "", of_given, of_result,
        _groups_of(groups[1]) if (groups := _GROUPS.search(attributes)) else None,
    )  # fmt: skip


def _within(text: str) -> tuple[str, str]:
    """What stands before the parenthesis that closes, and what after it."""
    depth = 1
    for bracket in re.finditer(r"[()]", text):
        depth += 1 if bracket[0] == "(" else -1
        if not depth:
            return text[: bracket.start()], text[bracket.end() :]
    return text, ""


def _sizes(text: str) -> list[tuple[str, int]]:
    """Type and bytes of each array in a text; a size that varies counts as its most."""
    result = []
    for kind, dims in _ARRAY.findall(text):
        sides = [int(one) for one in dims.replace("<=", "").split(",") if one]
        if bits_of(kind):
            result.append((kind, math.prod(sides) * width_of(kind)))
    return result


def instruction_of(programs: Programs, program: int, name: str) -> CollectiveInstruction | None:
    """The collective that an instruction of a profile's program is; None where it is not there."""
    module = programs.module(program)
    index = None if module is None else module.index
    row = None if index is None else index.row(name)
    if index is None or row is None:
        return None
    made = index.message(row)
    operands = [index.message(one) for one in index.inputs(row, control=False)]
    given, result = (
        [
            (kind_of(leaf), whole_size_of(leaf))
            for shape in shapes
            for _, leaf in leaves(shape)
            if kind_of(leaf) not in ("token", "")
        ]
        for shapes in ([one.shape for one in operands], [made.shape])
    )
    starts = operands[0].name if operands else ""
    return _made(name, made.opcode, starts, given, result, _groups_of(replica_groups(made)))


def named(name: str) -> CollectiveInstruction:
    """An instruction of which only the name is known."""
    return CollectiveInstruction(
        name, kind_of_collective(name), "", "", -1, None, -1, (), is_whole=False
    )


def _made(
    name: str, opcode: str, starts: str, given: list[tuple[str, int]],
    result: list[tuple[str, int]], groups: tuple[int, int, tuple[int, ...]] | None,
) -> CollectiveInstruction:  # fmt: skip
    count, size, group = groups or (-1, -1, ())
    end = next((one for one in ("start", "done") if opcode.endswith(f"-{one}")), "")
    kind = kind_of_collective(opcode) or kind_of_collective(name)
    gives, gets = (sum(part for _, part in side) for side in (given, result))
    if kind_of_collective(opcode) is None and not opcode.startswith("async-"):
        # A fusion is named after the collective in it, and takes and gives more than that.
        bytes_ = -1
    elif kind == "all-gather":
        bytes_ = gives * size if gives and size > 0 else gets - gives if end else gets
    elif kind == "reduce-scatter":
        bytes_ = gives or (gets * size if size > 0 else 0)
    else:
        bytes_ = gives or (0 if end else gets)
    data_type = next((one for one, _ in (*given, *result)), None)
    return CollectiveInstruction(
        name, kind, end, starts, bytes_ or -1, data_type, size, group, is_whole=count == 1
    )


def _groups_of(text: str) -> tuple[int, int, tuple[int, ...]]:
    """How many groups a text lists (-1: not known), how large each is (-1: not known, or not all
    are alike), and the members of the only one.

    Without any, all devices are one group; along axes of a mesh only the text of the mesh says it.
    """
    iota = _IOTA.match(text)
    if iota is not None:
        count, size = int(iota[1]), int(iota[2])
        if count != 1 or not 0 < size <= _MOST_MEMBERS:
            return count, size, ()
        sides = [int(one) for one in iota[3].split(",")]
        order = [int(one) for one in (iota[4] or "").split(",") if one]
        if math.prod(sides) != size or sorted(order) != [*range(len(order))]:
            return count, size, ()
        numbers = np.arange(size).reshape(sides)
        members = numbers.transpose(order) if len(order) == len(sides) else numbers
        return count, size, tuple(members.reshape(-1).tolist())
    if not text.startswith("{"):
        return -1, -1, ()
    groups = [
        tuple(int(one) for one in inner.split(",") if one)
        for inner in re.findall(r"\{([\d,]*)\}", text[1:-1])
    ]
    if not groups:
        return 1, -1, ()
    sizes = {len(group) for group in groups}
    return (
        len(groups),
        sizes.pop() if len(sizes) == 1 else -1,
        groups[0] if len(groups) == 1 else (),
    )
