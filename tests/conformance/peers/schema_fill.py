"""Fills any message with random values, by reflection alone. Runs in the peers' environment."""

import random
import struct
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

DEPTH = 3

_SIGNED = {FieldDescriptor.CPPTYPE_INT32: 32, FieldDescriptor.CPPTYPE_INT64: 64}
_UNSIGNED = {FieldDescriptor.CPPTYPE_UINT32: 32, FieldDescriptor.CPPTYPE_UINT64: 64}


def filled_messages(message_class: type[Message], seed: int) -> Iterator[Message]:
    """Messages that together set every field, with every member of every oneof in turn.

    Messages inside are filled too, ``DEPTH`` levels deep; each level takes the oneof members
    in turn as well.
    """
    oneofs = message_class.DESCRIPTOR.oneofs
    rounds = max([2, *(len(oneof.fields) for oneof in oneofs)])
    for number in range(rounds):
        message = message_class()
        _fill(message, random.Random(f"{seed} {number}"), DEPTH, number)
        yield message


def _fill(message: Message, rng: random.Random, depth: int, turn: int) -> None:
    descriptor = message.DESCRIPTOR
    chosen = {
        oneof.name: oneof.fields[turn % len(oneof.fields)].name for oneof in descriptor.oneofs
    }
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is None or chosen[oneof.name] == field.name:
            _fill_field(message, field, rng, depth, turn)


def _fill_field(
    message: Message, field: FieldDescriptor, rng: random.Random, depth: int, turn: int
) -> None:
    entry = field.message_type
    held: Any = getattr(message, field.name)
    if entry is not None and entry.GetOptions().map_entry:
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        for step in range(2):
            if value.message_type is None:
                held[_scalar(key, rng)] = _scalar(value, rng)
            elif depth:
                _fill(held[_scalar(key, rng)], rng, depth - 1, turn + step)
    elif _is_repeated(field):
        for step in range(2):
            if entry is None:
                held.append(_scalar(field, rng))
            elif depth:
                _fill(held.add(), rng, depth - 1, turn + step)
    elif entry is None:
        setattr(message, field.name, _scalar(field, rng))
    else:
        held.SetInParent()
        if depth:
            _fill(held, rng, depth - 1, turn)


def _is_repeated(field: FieldDescriptor) -> bool:
    if hasattr(field, "is_repeated"):
        return field.is_repeated
    return field.label == FieldDescriptor.LABEL_REPEATED


def _scalar(field: FieldDescriptor, rng: random.Random) -> Any:
    """A value that is not the default one; enums also get numbers without a name."""
    kind = field.cpp_type
    if bits := _SIGNED.get(kind):
        return rng.choice((-1, 1)) * rng.randrange(1, 2 ** rng.randrange(1, bits))
    if bits := _UNSIGNED.get(kind):
        return rng.randrange(1, 2 ** rng.randrange(1, bits + 1))
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return True
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        known = [value.number for value in field.enum_type.values if value.number]
        return rng.choice([*known, 10_000 + rng.randrange(1000)])
    if kind == FieldDescriptor.CPPTYPE_DOUBLE:
        return rng.uniform(-1e300, 1e300)
    if kind == FieldDescriptor.CPPTYPE_FLOAT:
        return struct.unpack("<f", struct.pack("<f", rng.uniform(-1e30, 1e30)))[0]
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.randbytes(rng.randrange(1, 9))
    return "".join(rng.choice("abz09_/:^é漢\N{ROCKET}") for _ in range(rng.randrange(1, 9)))


def nested_descriptors(descriptor: Descriptor) -> Iterator[Descriptor]:
    """A message's descriptor and those of the messages defined in it, map entries left out."""
    yield descriptor
    for nested in descriptor.nested_types:
        if not nested.GetOptions().map_entry:
            yield from nested_descriptors(nested)
