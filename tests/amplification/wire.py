"""The wire format by hand: messages that no encoder would make, a megabyte in milliseconds."""

from collections.abc import Callable


def varint(number: int) -> bytes:
    """A number of 64 bits."""
    number &= (1 << 64) - 1
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def number(field: int, value: int) -> bytes:
    """A field with a number."""
    return varint(field << 3) + varint(value)


def part(field: int, content: bytes | str = b"") -> bytes:
    """A field with a message, a text or packed numbers."""
    raw = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def repeated(size: int, unit: Callable[[int], bytes]) -> bytes:
    """``unit(0)``, ``unit(1)`` and so on, up to ``size`` bytes."""
    units: list[bytes] = []
    total = 0
    while True:
        made = unit(len(units))
        if total + len(made) > size:
            return b"".join(units)
        units.append(made)
        total += len(made)


def many(size: int, unit: bytes) -> bytes:
    """The same bytes again and again, up to ``size``."""
    return unit * (size // len(unit))
