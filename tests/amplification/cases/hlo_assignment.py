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


_REPORT = (
    b"Total bytes used: 4 (4B)\n\nAllocations sorted by size with their values:\n"
    b"allocation 0: size 4B, preallocated-temp:\n"
    b"  cumulative_size;         size;       offset; used_by_n_values;    shapes_list\n"
    b"  ------------------------------------------------------------\n"
)


def values_of_a_row(size: int) -> bytes:
    """A row that stands for as many values as there may be."""
    row = f"  4B(100%);  4B;  0;  9; {20_000 + size // 4 - 100}\u00d7f32[1]\n".encode()
    return _REPORT + row + many(size - len(_REPORT) - len(row), b"\n")


def values_of_rows(size: int) -> bytes:
    """Rows that stand for more than there may be."""
    return _REPORT + many(size, "  4B(100%);  4B;  0;  9; 999\u00d7f32[1]\n".encode())
