"""Texts of buffer assignments and memory usage that XLA never wrote."""

from tests.amplification.wire import many, repeated


def allocations(size: int) -> bytes:
    return b"BufferAssignment:\n" + repeated(
        size,
        lambda n: (
            f"allocation {n}: size 40, preallocated-temp:\n"
            f" value: <{n} i{n} @0> (size=40,offset=0): f32[10]{{0}}\n"
        ).encode(),
    )


def values(size: int) -> bytes:
    return b"BufferAssignment:\nallocation 0: size 40, preallocated-temp:\n" + repeated(
        size, lambda n: f" value: <{n} i{n} @0> (size=4,offset={n}): f32[]\n".encode()
    )


def empty_allocations(size: int) -> bytes:
    return b"BufferAssignment:\n" + many(size, b"allocation 0: size 1:\n")


def nested_shape(size: int) -> bytes:
    half = size // 2
    return (
        b"BufferAssignment:\nallocation 0: size 40, preallocated-temp:\n value: <1 i @0> "
        b"(size=4,offset=0): " + b"(" * half + b")" * half + b"\n"
    )


def digits(size: int) -> bytes:
    return b"BufferAssignment:\nallocation 0: size " + b"9" * size + b", preallocated-temp:\n"


def index(size: int) -> bytes:
    return (
        b"BufferAssignment:\nallocation 0: size 40, preallocated-temp:\n value: <1 i{0"
        + many(size, b",0")
        + b"} @0> (size=4,offset=0): f32[]\n"
    )


def used(size: int) -> bytes:
    return (
        b"BufferAssignment:\nallocation 0: size 40, preallocated-temp:\n"
        b" value: <1 i @0> (size=4,offset=0): f32[]\n\nTotal bytes used: 40 (40B)\n\nUsed values:\n"
    ) + repeated(
        size,
        lambda n: f"<{n} i{n} @0>\n positions:\n  i{n}\n uses:\n from instruction: i\n".encode(),
    )
