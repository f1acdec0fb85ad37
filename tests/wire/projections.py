"""Arbitrary projections of a message type: paths, containers, filters."""

from functools import cache
from random import Random

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from tests.wire.nodes import is_repeated, is_span
from tests.wire.reference import Projection

_FEW = 14
"""Everything below a message of more types than this may be a thousand tables."""


@cache
def _reachable(message: Descriptor) -> frozenset[str]:
    """Full names of the messages below ``message`` and of itself."""
    result: dict[str, Descriptor] = {message.full_name: message}
    queue = [message]
    while queue:
        for fd in queue.pop().fields:
            below = fd.message_type
            if below is not None and below.full_name not in result:
                result[below.full_name] = below
                queue.append(below)
    return frozenset(result)


def paths(
    rng: Random, message: Descriptor, above: frozenset[str] = frozenset(), depth: int = 0
) -> list[str]:
    """Paths for `Plan`, no field named in two ways.

    ``**`` is left out where a message above, of which only parts are asked, may recur below.
    """
    if (
        not above & _reachable(message)
        and len(_reachable(message)) <= _FEW
        and rng.random() < (0.04, 0.15, 0.3, 0.3)[min(depth, 3)]
    ):
        return ["**"] if rng.random() < 0.7 else ["**", "@span"]
    request: list[str] = []
    taken: set[str] = set()
    if rng.random() < 0.2:
        request.append("*")
        taken |= {f.name for f in message.fields if not f.message_type and not is_repeated(f)}
    for oneof in message.oneofs:
        members = {fd.name for fd in oneof.fields}
        if not members & taken and rng.random() < 0.35:
            request.append(oneof.name)
            taken |= members
    fields = [fd for fd in message.fields if fd.name not in taken]
    most = min(len(fields), rng.choice((1, 2, 4, 7)[: 4 if depth < 2 else 2]))
    for fd in rng.sample(fields, most):
        request += _field_paths(rng, fd, above | {message.full_name}, depth + 1)
    if rng.random() < 0.1:
        request.append("@span")
    rng.shuffle(request)
    return request or ["@"]


def _field_paths(rng: Random, fd: FieldDescriptor, above: frozenset[str], depth: int) -> list[str]:
    below = fd.message_type
    if below is not None and depth < 6 and rng.random() < 0.75:
        return [f"{fd.name}.{path}" for path in paths(rng, below, above, depth)]
    presence = not is_repeated(fd) and rng.random() < 0.4
    return [f"{fd.name}?" if presence else fd.name]


def containers(rng: Random, projection: Projection) -> tuple[str, ...]:
    """A valid choice: the root, and frames whose messages above are containers too."""
    chosen = {projection.root}
    for node in projection.frames():
        if node.above is not None and node.above.frame in chosen and rng.random() < 0.5:
            chosen.add(node)
    closed = False
    while not closed:
        closed = True
        for node in projection.nodes.values():
            for child in node.children.values():
                inside = child in chosen and node.frame not in chosen
                if inside or (child in chosen and child.above and child.above.frame not in chosen):
                    chosen.discard(child)
                    closed = False
    return tuple(node.path for node in chosen)


def filters(rng: Random, projection: Projection, chosen: tuple[str, ...]) -> dict[str, list[int]]:
    """Perhaps a filter on integer columns of some atomic messages."""
    result: dict[str, list[int]] = {}
    for node in projection.frames():
        numbers = [
            name
            for name in node.leaves
            if not is_span(node.message.fields_by_name[name])
            and node.message.fields_by_name[name].type
            not in {FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT}
            and node.message.fields_by_name[name].type
            not in {FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64}
        ]
        if node.path not in chosen and numbers and rng.random() < 0.5:
            ids = [*range(6), -1, 127, 300, 65535, 65536, 1 << 20, 2**31 - 1, -(2**31), 2**53 + 1]
            column = f"{node.path}.{rng.choice(numbers)}"
            result[column] = rng.sample(ids, rng.choice((0, 1, 3, 6, len(ids))))
    return result
