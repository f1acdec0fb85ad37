"""Damaging bytes: what a bad disk, a bad network, a bad program or a bad person does to a file."""

from random import Random

from google.protobuf.descriptor import Descriptor
from tests.wire.wirebytes import len_field, read_varint, tag, varint


def sized_fields(data: bytes, message: Descriptor) -> list[tuple[int, int, int]]:
    """Where the lengths of all delimited fields stand, messages below included.

    Per field the offset of its length, of its content, and of its end.
    """
    result: list[tuple[int, int, int]] = []
    queue = [(0, len(data), message)]
    while queue:
        at, end, descriptor = queue.pop()
        fields = {fd.number: fd for fd in descriptor.fields}
        while at < end:
            key, at = read_varint(data, at)
            wire = key & 7
            if wire == 0:
                _, at = read_varint(data, at)
            elif wire == 2:
                length, start = read_varint(data, at)
                result.append((at, start, start + length))
                fd = fields.get(key >> 3)
                if fd is not None and fd.message_type is not None:
                    queue.append((start, start + length, fd.message_type))
                at = start + length
            else:
                at += 8 if wire == 1 else 4
    return result


def mutate(rng: Random, data: bytes, sized: list[tuple[int, int, int]]) -> bytes:
    """``data`` damaged in one to three ways; ``sized`` is what `sized_fields` says of it."""
    first = rng.random()
    if sized and first < 0.45:
        data = rng.choice((_lie, _lie, _wrap, _repeat, _drop, _swap))(rng, data, sized)
    elif first < 0.5:
        data = data[: rng.randrange(len(data) + 1)]
    for _ in range(rng.choice((0, 1, 1, 2)) if first < 0.5 else rng.choice((1, 1, 2, 3))):
        change_any = rng.choice(
            (_flip, _flip, _byte, _cut_out, _double, _insert, _insert, _truncate)
        )
        data = change_any(rng, data)
    return data


# Changes that know where fields begin.


def _lie(rng: Random, data: bytes, sized: list[tuple[int, int, int]]) -> bytes:
    """A length that is not true."""
    at, start, end = rng.choice(sized)
    length = end - start
    lies = (0, length - 1, length + 1, length // 2, length + rng.randrange(1, 200), len(data),
            2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip
    return data[:at] + varint(max(0, rng.choice(lies)), rng.choice((0, 0, 0, 5, 10))) + data[start:]


def _wrap(rng: Random, data: bytes, sized: list[tuple[int, int, int]]) -> bytes:
    """Messages nested far deeper than any real one."""
    at, start, end = rng.choice(sized)
    content, number = data[start:end], rng.randrange(1, 12)
    for _ in range(rng.choice((1, 2, 50, 98, 99, 100, 101, 102, 200))):
        content = len_field(number, content)
    return data[:at] + varint(len(content)) + content + data[end:]


def _repeat(rng: Random, data: bytes, sized: list[tuple[int, int, int]]) -> bytes:
    """The content of a field twice; its length true or not."""
    at, start, end = rng.choice(sized)
    if rng.random() < 0.5:
        return data[:end] + data[start:end] + data[end:]
    return data[:at] + varint(2 * (end - start)) + data[start:end] * 2 + data[end:]


def _drop(rng: Random, data: bytes, sized: list[tuple[int, int, int]]) -> bytes:
    """The content of a field gone; its length true or not."""
    at, start, end = rng.choice(sized)
    return data[:start] + data[end:] if rng.random() < 0.5 else data[:at] + b"\0" + data[end:]


def _swap(rng: Random, data: bytes, sized: list[tuple[int, int, int]]) -> bytes:
    """The content of one field where another's was."""
    (_, start, end), (at, _, behind) = rng.choice(sized), rng.choice(sized)
    return data[:at] + varint(end - start) + data[start:end] + data[behind:]


# Changes that do not.


def _flip(rng: Random, data: bytes) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _byte(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice((b"\0", b"\x7f", b"\x80", b"\xff")) + data[at + 1 :]


def _cut_out(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 2, 7, 40)) :]


def _double(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[: at + rng.choice((1, 2, 7, 40))] + data[at:]


def _truncate(rng: Random, data: bytes) -> bytes:
    return data[: len(data) - rng.choice((1, 2, 3, 9, 60))]


def _insert(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    number = rng.randrange(1, 40)
    inserted = (
        varint(-1),
        b"\xff" * 10 + b"\x01",
        tag(number, 0) + varint(rng.randrange(1 << 64)),
        tag(number, 2) + b"\x00",
        tag(number, 3) + tag(number, 4),
        tag(number, 3),
        tag(number, rng.choice((6, 7))),
        tag(number, 1) + bytes(8),
        tag(0, 0) + b"\x01",
        bytes(rng.randrange(256) for _ in range(rng.randrange(1, 12))),
    )
    return data[:at] + rng.choice(inserted) + data[at:]
