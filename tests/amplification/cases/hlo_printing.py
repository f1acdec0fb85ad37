"""Programs of which few bytes are a long text (xla/service/hlo.proto)."""

from tests.amplification.cases.hlo_proto import (
    _F32,
    _FIRST,
    _TUPLE,
    _computation,
    _instruction,
    _main,
    _program,
)
from tests.amplification.wire import many, number, part, repeated, varint


def operands_of_long_name(size: int) -> bytes:
    """One that uses the same again and again."""
    return _of_long_name(size, "tuple", part(36, b"\1" * (size // 2)))


def predecessors_of_long_name(size: int) -> bytes:
    """One that waits for the same again and again."""
    return _of_long_name(size, "tuple", part(37, b"\1" * (size // 2)))


def _of_long_name(size: int, opcode: str, more: bytes) -> bytes:
    first = _instruction(1, "parameter", name="x" * (size // 2))
    return _main(first, _instruction(3, opcode, more))


def calls_of_long_name(size: int) -> bytes:
    """One that calls the same again and again."""
    call = _instruction(2, "call", more=part(38, b"\2" * (size // 2)))
    return _program(_computation(1, _FIRST, call, name="main"), _long_computation(size))


def callers_of_long_name(size: int) -> bytes:
    """Very many that call the same."""
    calls = repeated(size // 2, lambda n: _instruction(n + 2, "call", more=number(38, 2)))
    return _program(_computation(1, _FIRST, calls, name="main"), _long_computation(size))


def _long_computation(size: int) -> bytes:
    first = _instruction(1 << 20, "parameter")
    return part(3, part(1, "c" * (size // 2)) + first + number(5, 2) + number(6, 1 << 20))


def sharding_of_parts(size: int) -> bytes:
    """What is said of a tuple, for each of its parts."""
    shape = part(3, number(2, _TUPLE) + many(size // 2, part(4, number(2, _F32))))
    sharding = part(40, number(1, 3) + part(3, b"\1" * (size // 2)))
    return _main(_FIRST, _instruction(2, "copy", number(36, 1), sharding, shape=shape))


def long_axis(size: int) -> bytes:
    """A name of an axis, in groups of devices that are very many."""
    mesh = part(1, part(1, part(1, "x" * (size // 2)) + number(2, 2)))
    return _main(
        _FIRST,
        _instruction(2, "all-reduce", number(36, 1), part(93, mesh + many(size // 2, part(2)))),
    )


def product_of_devices(size: int) -> bytes:
    """More devices than a number of 4300 digits."""
    count = size // 11
    order = part(4, b"".join(map(varint, range(count))))
    groups = part(92, number(1, 1) + number(2, 1) + part(3, varint(1 << 62) * count) + order)
    return _main(_FIRST, _instruction(2, "all-reduce", number(36, 1), groups))


def gaps_of_origins(size: int) -> bytes:
    """Each the last part of tuples in tuples."""
    origin = part(88, part(1, part(1, varint(4095) * 64) + part(2, part(1, "a"))))
    return _main(_FIRST, repeated(size, lambda n: _instruction(n + 2, "add", more=origin)))


def shallow_gaps_of_origins(size: int) -> bytes:
    """As many gaps as are written, again and again."""
    origin = part(88, part(1, part(1, varint(4095) * 15) + part(2, part(1, "a"))))
    return _main(_FIRST, repeated(size, lambda n: _instruction(n + 2, "add", more=origin)))


def shared_payload(size: int) -> bytes:
    """A long configuration that all instructions share."""
    made = repeated(size // 2, lambda n: _instruction(n + 2, "add", more=part(99, number(2, 0))))
    return _main(_FIRST, made, more=part(22, "x" * (size // 2)))


def shared_scoped_memory(size: int) -> bytes:
    """A configuration of many entries that all instructions share."""
    made = repeated(size // 2, lambda n: _instruction(n + 2, "add", more=part(99, number(2, 0))))
    entries = b'{"used_scoped_memory_configs":[0' + many(size // 2, b",0") + b"]}"
    return _main(_FIRST, made, more=part(22, entries))


def asynchronous_chain(size: int) -> bytes:
    """Updates of one start, each of the one before."""
    start = _instruction(2, "async-start", number(36, 1), number(38, 2))
    updates = repeated(size, lambda n: _instruction(n + 3, "async-update", number(36, n + 2)))
    started = _computation(2, _instruction(1 << 20, "add"), root=1 << 20)
    return _program(_computation(1, _FIRST, start, updates, name="main"), started)
