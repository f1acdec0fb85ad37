"""What compiled programs say of their collectives: members, bytes, which ends belong together."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from peakline.formats.hlo_proto.shapes import MOST_BYTES, bits_of, width_of
from peakline.formats.hlo_text.shapes import shape_end
from peakline.formats.hlo_text.values import replica_groups as replica_groups_in
from peakline.hlo.printing.devices import replica_groups
from peakline.hlo.program import kind_of, leaves, whole_size_of
from peakline.timing.programs.device import Programs
from peakline.trace.activity_names import kind_of_collective

_BEGIN = re.compile(r"%?(\S+) = ")
_OPCODE = re.compile(r"\s*([a-z][a-z0-9-]*)\(")
_ARRAY = re.compile(r"\b([a-z][a-z0-9]*)\[([\d,<=]*)\]")
_GROUPS = re.compile(
    r"\breplica_groups=(\{(?:\{[\d,]*\},?)*\}|\[[\d,]*\]<=\[[\d,]*\](?:T\([\d,]*\))?|@?mesh.*?\})"
)
_OPERAND = re.compile(r"%([^\s,()]+)")
_MOST_MEMBERS, _MOST_SIDES = 1 << 20, 32
"""So many devices, and sides of the array of all, a program has at most."""


class CollectiveInstruction(NamedTuple):
    """A collective of a program: its ``name``, its ``kind`` (None where only the name of its event
    says it), and which ``end`` of an asynchronous one it is (``start``, ``done`` or nothing).

    ``starts`` is the instruction that a ``done`` waits for. ``size_bytes`` is as in
    `peakline.timing.collectives.CollectiveRows`, -1 where it is not known, as ``group_size``.
    ``groups`` are the members of each group, where they are listed; ``is_whole``: there is only
    one.
    """

    name: str
    kind: str | None
    end: str
    starts: str
    size_bytes: int
    data_type: str | None
    group_size: int
    groups: tuple[tuple[int, ...], ...]
    is_whole: bool

    def group_with(self, member: int) -> tuple[int, ...]:
        """The group of a member (-1: not known who); none where that is not listed or not known."""
        if self.is_whole:
            return self.groups[0] if self.groups else ()
        return next((group for group in self.groups if member in group), ())


@lru_cache(1 << 12)
def instruction_in(text: str) -> CollectiveInstruction | None:
    """The collective that the text of an instruction is; None where it is no instruction.

    >>> instruction_in("%a.1 = f32[8]{0} all-reduce(f32[8]{0} %b), replica_groups={{0,1}}")[4:8]
    (32, 'f32', 2, ((0, 1),))
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
    try:
        of_result, of_given = _sizes(result), _sizes(given)
    except ValueError:  # thousands of digits
        return None
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
    result: list[tuple[str, int]], listed: tuple[int, int, tuple[tuple[int, ...], ...]] | None,
) -> CollectiveInstruction:  # fmt: skip
    count, size, groups = listed or (-1, -1, ())
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
        name,
        kind,
        end,
        starts,
        min(bytes_, MOST_BYTES) or -1,
        data_type,
        size,
        groups,
        is_whole=count == 1,
    )


def _groups_of(text: str) -> tuple[int, int, tuple[tuple[int, ...], ...]]:
    """How many groups a text lists (-1: not known), how large each is (-1: not known, or not all
    are alike), and the members of each.

    Without any, all devices are one group.
    """
    try:
        stated: Any = replica_groups_in(text.encode())
    except ValueError:
        return -1, -1, ()
    if not stated:
        return 1, -1, ()
    if "collective_device_list" in stated:
        listed = stated["collective_device_list"]["replica_groups"]
        groups = tuple(tuple(one["replica_ids"]) for one in listed)
        if not any(groups):
            return 1, -1, ()
        sizes = {len(group) for group in groups}
        return len(groups), sizes.pop() if len(sizes) == 1 else -1, groups
    if "iota_collective_device_list" in stated:
        iota = stated["iota_collective_device_list"]
        sides, order = iota["iota_reshape_dims"], iota["iota_transpose_perm"]
        size = iota["num_devices_per_group"]
        return _numbered(sides, order, iota["num_replica_groups"], size)
    count, size, groups = _along(stated["mesh_axes_replica_group_list"])
    # Of a mesh whose devices are listed, theirs are other numbers.
    return count, size, () if "device_ids" in text else groups


def _along(stated: Any) -> tuple[int, int, tuple[tuple[int, ...], ...]]:
    """The groups along some axes of a mesh, or parts of such."""
    axes = [one["size"] for one in stated["mesh"]["axes"]]
    parts = [[(size, False)] for size in axes]
    for used in stated["axes"]:
        at = used["mesh_axis_index"]
        part = used.get("sub_axis_info", {"pre_size": 1, "size": axes[at]})
        before, size = part["pre_size"], part["size"]
        if len(parts[at]) > 1 or before * size <= 0 or axes[at] % (before * size):
            return -1, -1, ()
        rest = axes[at] // (before * size)
        parts[at] = [(before, False), (size, True), (rest, False)]
    sides = [size for axis in parts for size, _ in axis]
    is_used = [own for axis in parts for _, own in axis]
    order = sorted(range(len(sides)), key=is_used.__getitem__)
    size = math.prod(side for side, own in zip(sides, is_used, strict=True) if own)
    count = math.prod(sides) // max(size, 1)
    return _numbered(sides, order, count, size)


def _numbered(
    sides: list[int], order: list[int], count: int, size: int
) -> tuple[int, int, tuple[tuple[int, ...], ...]]:
    """Devices in the order of their numbers, reshaped, transposed and split into groups."""
    is_sound = math.prod(sides) == count * size and sorted(order) == [*range(len(sides))]
    if not 0 < count * size <= _MOST_MEMBERS:
        return -1, -1, ()
    if not is_sound or len(sides) > _MOST_SIDES:
        return count, size, ()
    members = np.arange(count * size).reshape(sides).transpose(order).reshape(count, size)
    return count, size, tuple(map(tuple, members.tolist()))
