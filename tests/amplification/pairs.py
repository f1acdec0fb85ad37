"""The worst two different files to compare, or to explain one with the other: side 0 and side 1."""

from tests.amplification.cases.hlo_proto import _FIRST, _assigned, _main, _value
from tests.amplification.wire import number, part, repeated


def shapes(size: int, side: int) -> bytes:
    """200 kinds of one op, of as many dimensions as there is room for, which all differ."""
    more = part(2, number(1, 3)) * max((size // 200 - 60) // 4, 1)
    return b"".join(
        _allocation(n, "a", part(2, number(1, n + 1 + 1000 * side)) + more) for n in range(200)
    )


def kinds(size: int, side: int) -> bytes:
    """Many ops, each with 200 kinds, which all differ."""
    return repeated(
        size, lambda n: _allocation(n, f"o{n // 200}", part(2, number(1, 2 * n + side + 1)))
    )


def allocators(size: int, side: int) -> bytes:
    """Allocators that are in one of the files only."""
    return repeated(size, lambda n: _allocation(n, "a", b"", f"{n}{'ab'[side]}"))


def failures(size: int, side: int) -> bytes:
    """Failed requests, and a program with an allocation for each."""
    if side == 0:
        line = (
            "E0528 x.cc:1] RESOURCE_EXHAUSTED: Out of memory while trying to allocate {} bytes.\n"
        )
        return repeated(size, lambda n: line.format(256 * n + 256).encode())
    held = repeated(
        size, lambda n: _value(n) + part(3, number(1, n) + number(2, 256 * n + 256) + _assigned(n))
    )
    return _main(_FIRST, assignment=held)


def _allocation(n: int, op: str, dims: bytes, allocator: str = "g") -> bytes:
    buffer = number(1, 256) + number(2, 256) + part(3, allocator) + number(4, n + 1)
    tensor = number(1, 1) + part(2, dims) + part(4, buffer)
    return part(1, part(4, number(1, 1) + part(2, op) + part(3, tensor)))
