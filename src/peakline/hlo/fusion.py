"""The cost of a fusion: what its parts compute, and what crosses its border."""

from __future__ import annotations

import math
from collections.abc import Callable

from peakline.hlo.program import (
    UNCOUNTED,
    Fused,
    Index,
    Made,
    Program,
    Sum,
    elements,
    kind_of,
    leaves,
    single,
    size_of,
)

SumOf = Callable[[int], Sum]
_IMMEDIATE = {False: 1, True: 8}
"""Elements of a constant up to which it is part of the code; more on a GPU."""
_MOST_ROOTS = 2_000_000
"""Work on one fusion after which everything in it counts as done once."""


def fusion(made: Made, sum_of: SumOf, program: Program) -> None:
    """What is inside touches no memory; a result that is updated in place is neither read nor
    written whole.
    """
    parts = program.computations[made.calls[0]]
    if (part := program.copied_part(made)) is not None:
        made.flops, made.transcendentals = part.flops, part.transcendentals
        made.bytes, made.read, made.out = part.bytes, part.read, part.out
        return
    total = sum_of(0)
    made.flops, made.transcendentals = total.flops, total.transcendentals
    made.out, made.read = {}, {}
    root = program.roots[made.calls[0]]
    _writes(made, root)
    key = made.calls[0], tuple(made.out)
    if key not in program.fused:
        # The same for all fusions of a computation, of which there can be very many.
        program.fused[key] = fused = Fused()
        try:
            _look_inside(fused, root, parts, program.parameters(made.calls[0]), program)
        except UNCOUNTED:
            fused.is_damaged = True
    fused = program.fused[key]
    made.read, made.use = fused.read, fused.use
    made.flops = made.flops if fused.flops is None else fused.flops
    if fused.is_damaged:
        raise ValueError
    made.bytes = float(sum(made.out.values()) + fused.constants + fused.read_bytes)


def _look_inside(
    fused: Fused, root: Made, parts: list[Made], parameters: dict[int, Made], program: Program
) -> None:
    for part in parts:
        part.share = 1.0
    if program.is_gpu:
        fused.flops = _shares(root, parts, program)
    fused.constants = sum(
        size_of(part.shape) * min(part.share, 1.0)
        for part in parts
        if part.opcode == "constant" and elements(part.shape) > _IMMEDIATE[program.is_gpu]
    )
    for number, parameter in sorted(parameters.items()):
        fused.use[number] = parameter.share
        _reads(fused.read, number, parameter, program)
    fused.read_bytes = sum(fused.read.values())


def _writes(made: Made, root: Made) -> None:
    for index, part in leaves(made.shape):
        source = root.operands[index[0]] if len(index) == 1 and root.opcode == "tuple" else root
        if source.opcode == "dynamic-update-slice":
            made.out[index] = size_of(source.operands[1].shape)
            source.use[0] = 0.0
        elif kind_of(part) not in ("token", "opaque"):
            made.out[index] = size_of(part)


def _reads(
    result: dict[tuple[int, Index], float], number: int, parameter: Made, program: Program
) -> None:
    for index, _ in leaves(parameter.shape):
        source = parameter
        for place in index:
            wanted = (
                user
                for user in source.users
                if user.opcode == "get-tuple-element" and user.proto.tuple_index == place
            )
            source = next(wanted, source)
        if program.is_gpu:
            read = float(round(single(size_of(source.shape) * min(source.share, 1.0))))
        else:
            read = float(_bytes_read(source, program, 0))
        result[number, index] = read


def _bytes_read(parameter: Made, program: Program, depth: int) -> int:
    """What is read of a parameter: its slices alone where only they are used.

    All other users share one reading of the whole, but for broadcasts and reshapes.
    """
    size, whole, is_shared = 0, size_of(parameter.shape), False
    for user in dict.fromkeys(parameter.users):
        opcode = user.opcode
        if opcode == "fusion" and depth < 8:
            size += _nested(user, parameter, program, depth)
        elif opcode == "slice" or (opcode == "dynamic-slice" and user.operands[0] is parameter):
            size += size_of(user.shape)
        elif opcode in ("broadcast", "reshape"):
            size += whole
        elif opcode == "dynamic-update-slice" and user.operands[0] is parameter:
            continue
        elif not is_shared:
            is_shared = True
            size += whole
    return size


def _nested(user: Made, parameter: Made, program: Program, depth: int) -> int:
    """What a fusion inside the fusion reads of it: slices of a simple one, else as outside."""
    inner = program.parameters(user.calls[0])
    root = program.roots[user.calls[0]]
    size = 0
    for number, operand in enumerate(user.operands):
        if operand is not parameter:
            continue
        own, is_shared = inner[number], False
        is_simple = not root.operands or root.operands[0] is own
        for next_user in dict.fromkeys(user.users):
            if is_simple and next_user.opcode in ("slice", "dynamic-slice"):
                size += size_of(next_user.shape)
            elif own is root and not is_shared:
                is_shared = True
                size += size_of(own.shape)
            elif not is_shared:
                is_shared = True
                size += _bytes_read(own, program, depth + 1)
    return size


def _shares(root: Made, parts: list[Made], program: Program) -> float:
    """How often each part is made, from the result backwards; gives the operations in all.

    Elementwise parts are made once for all users that walk through the same places; what is used
    in another order is made again for each of them. XLA counts it in 32 bits.
    """
    roots: dict[Made, set[Made]] = {part: set() for part in parts}
    shares = dict.fromkeys(parts, 0.0)
    roots[root], shares[root] = {root}, 1.0
    flops, work = 0.0, 0
    for part in reversed(parts):
        own = roots[part]
        part.share = single(sum(shares[one] for one in own))
        flops = single(flops + part.share * part.flops)
        shares_roots = program.is_elementwise(part) or part.opcode in ("tuple", "get-tuple-element")
        for number, operand in enumerate(part.operands):
            if shares_roots:
                roots[operand] |= own
                work += len(own)
                if work > _MOST_ROOTS:
                    return _once(parts)
                continue
            roots[operand].add(operand)
            count = elements(operand.shape)
            used = single(part.share * single(part.use.get(number, 1.0)))
            share = math.ceil(single(used * count)) / count if count else 0.0
            shares[operand] = single(shares[operand] + share)
    return flops


def _once(parts: list[Made]) -> float:
    for part in parts:
        part.share = 1.0
    return sum(part.flops for part in parts)
