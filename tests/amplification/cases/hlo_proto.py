"""Programs that XLA never made (xla/service/hlo.proto)."""

from tests.amplification.wire import many, number, part, repeated

_F32, _TUPLE = 11, 13
_SCALAR = part(3, number(2, _F32))
_MODULE, _ASSIGNMENT = 1, 3


def _instruction(
    key: int,
    opcode: str,
    operands: bytes = b"",
    more: bytes = b"",
    name: str = "",
    shape: bytes = _SCALAR,
) -> bytes:
    return part(
        2, part(1, name or f"i{key}") + part(2, opcode) + shape + number(35, key) + operands + more
    )


def _computation(key: int, *instructions: bytes, name: str = "", root: int = 1) -> bytes:
    return part(
        3, part(1, name or f"c{key}") + b"".join(instructions) + number(5, key) + number(6, root)
    )


def _program(*computations: bytes, more: bytes = b"", assignment: bytes = b"") -> bytes:
    head = part(1, "jit_f") + part(2, "main") + number(6, 1) + number(5, 7)
    module = head + b"".join(computations) + more
    return part(_MODULE, module) + (part(_ASSIGNMENT, assignment) if assignment else b"")


def _main(*instructions: bytes, **settings: bytes) -> bytes:
    return _program(_computation(1, *instructions, name="main"), **settings)


_FIRST = _instruction(1, "parameter", name="a")


def odd_algorithm(size: int) -> bytes:
    """A list where XLA has an object."""
    return _convolution(b'{"algorithm":[' + b"1," * (size // 2) + b"1]}")


def odd_knobs(size: int) -> bytes:
    return _convolution(b'{"algorithm":{"tuning_knobs":[' + b"1," * (size // 2) + b"1]}}")


def odd_scale(size: int) -> bytes:
    return _convolution(b'{"conv_result_scale":' + b"9" * min(size, 400) + b"}")


def _convolution(config: bytes) -> bytes:
    given = part(28, "__cudnn$convForward")
    given += part(43, b'{"cudnn_conv_backend_config":' + config + b"}")
    call = _instruction(2, "custom-call", number(36, 1), given, name="main")
    scalar = number(2, _F32)
    shape = part(4, part(1, scalar) + part(2, scalar) + part(3, "a"))
    return _program(_computation(1, _FIRST, call, shape, name="main", root=2), more=shape)


def empty_instructions(size: int) -> bytes:
    return _main(_FIRST, many(size, part(2)))


def instructions(size: int) -> bytes:
    return _main(_FIRST, repeated(size, lambda n: _instruction(n + 2, "add")))


def opcodes(size: int) -> bytes:
    return _main(_FIRST, repeated(size, lambda n: _instruction(n + 2, f"op{n}")))


def one_id(size: int) -> bytes:
    return _main(_FIRST, many(size, _instruction(2, "add")))


def one_name(size: int) -> bytes:
    return _main(_FIRST, repeated(size, lambda n: _instruction(n + 2, "add", name="b")))


def huge_ids(size: int) -> bytes:
    return _main(
        _FIRST,
        repeated(
            size,
            lambda n: _instruction((1 << 62) + 977 * n, "add", number(36, (1 << 62) + 977 * n)),
        ),
    )


def chain(size: int) -> bytes:
    return _main(_FIRST, repeated(size, lambda n: _instruction(n + 2, "negate", number(36, n + 1))))


def doubling_chain(size: int) -> bytes:
    """Each adds the one before to itself: 2^n ways."""
    return _main(
        _FIRST,
        repeated(
            size, lambda n: _instruction(n + 2, "add", part(36, bytes((*_v(n + 1), *_v(n + 1)))))
        ),
    )


def _v(value: int) -> bytes:
    return number(0, value)[1:]


def tuples(size: int) -> bytes:
    """Get-tuple-element of the tuple before, again and again."""

    def pair(n: int) -> bytes:
        shape = part(3, number(2, _TUPLE) + part(4, number(2, _F32)))
        return _instruction(2 * n + 2, "tuple", number(36, 2 * n + 1), shape=shape) + _instruction(
            2 * n + 3, "get-tuple-element", number(36, 2 * n + 2)
        )

    return _main(_FIRST, repeated(size, pair))


def circle(size: int) -> bytes:
    return _main(
        _instruction(1, "add", number(36, 2), name="a"),
        repeated(size, lambda n: _instruction(n + 2, "add", number(36, n + 3))),
    )


def star(size: int) -> bytes:
    return _main(
        _FIRST,
        repeated(size // 2, lambda n: _instruction(n + 2, "negate", number(36, 1))),
        _instruction(1 << 40, "tuple", part(36, b"".join(_v(n + 2) for n in range(size // 80)))),
    )


def operands(size: int) -> bytes:
    return _main(_FIRST, _instruction(2, "tuple", part(36, b"\1" * size)))


def predecessors(size: int) -> bytes:
    return _main(_FIRST, _instruction(2, "tuple", part(37, b"\1" * size)))


def dense(size: int) -> bytes:
    """Everybody takes from all before."""
    count = int(size**0.5)
    return _main(
        _FIRST,
        *(
            _instruction(n, "tuple", part(36, b"".join(_v(k) for k in range(1, n))))
            for n in range(2, count)
        ),
    )


def calls(size: int) -> bytes:
    """Very many calls of one computation."""
    called = _computation(2, _instruction(1 << 20, "parameter"), root=1 << 20)
    return _program(
        _computation(
            1, _FIRST, repeated(size, lambda n: _instruction(n + 2, "call", more=number(38, 2))),
            name="main",
        ),
        called,
    )  # fmt: skip


def called_by_one(size: int) -> bytes:
    called = _computation(2, _instruction(1 << 20, "parameter"), root=1 << 20)
    call = _instruction(2, "call", more=part(38, b"\2" * size))
    return _program(_computation(1, _FIRST, call, name="main"), called)


def nested_calls(size: int) -> bytes:
    """Each computation calls the next."""

    def level(n: int) -> bytes:
        key = 10 + n
        return _computation(
            key, _instruction(100 + n, "call", more=number(38, key + 1)), root=100 + n
        )

    first = _computation(1, _FIRST, _instruction(2, "call", more=number(38, 10)), name="main")
    return _program(first, repeated(size, level))


def doubling_calls(size: int) -> bytes:
    """Each computation calls the next twice: as a tree it would be 2^n."""

    def level(n: int) -> bytes:
        key = 10 + n
        two = [_instruction(100 + 2 * n + k, "call", more=number(38, key + 1)) for k in range(2)]
        return _computation(key, *two, root=100 + 2 * n)

    first = _computation(1, _FIRST, _instruction(2, "call", more=number(38, 10)), name="main")
    return _program(first, repeated(size, level))


def nested_whiles(size: int) -> bytes:
    def level(n: int) -> bytes:
        key = 10 + n
        body = _instruction(100 + n, "while", more=number(38, key + 1) + number(38, key + 1))
        return _computation(key, body, root=100 + n)

    first = _computation(
        1, _FIRST, _instruction(2, "while", more=number(38, 10) + number(38, 10)), name="main"
    )
    return _program(first, repeated(size, level))


def nested_fusions(size: int) -> bytes:
    def level(n: int) -> bytes:
        key = 10 + n
        body = _instruction(100 + n, "fusion", more=number(38, key + 1) + part(11, "kLoop"))
        return _computation(key, body, root=100 + n)

    first = _computation(1, _FIRST, _instruction(2, "fusion", more=number(38, 10)), name="main")
    return _program(first, repeated(size, level))


def circle_of_calls(size: int) -> bytes:
    def level(n: int) -> bytes:
        key = 10 + n
        call = _instruction(100 + n, "call", more=number(38, 10) + number(38, key + 1))
        return _computation(key, call, root=100 + n)

    return _program(
        _computation(1, _FIRST, _instruction(2, "call", more=number(38, 10)), name="main"),
        repeated(size, level),
    )


def computations(size: int) -> bytes:
    return _program(
        _computation(1, _FIRST, name="main"),
        repeated(size, lambda n: _computation(n + 2, _instruction(n + 2, "parameter"), root=n + 2)),
    )


def empty_computations(size: int) -> bytes:
    return _program(_computation(1, _FIRST, name="main"), many(size, part(3)))


def dimensions(size: int) -> bytes:
    shape = part(3, number(2, _F32) + part(3, b"\x7f" * size))
    return _main(_FIRST, _instruction(2, "broadcast", shape=shape))


def tuple_shapes(size: int) -> bytes:
    shape = part(3, number(2, _TUPLE) + many(size, part(4, number(2, _F32))))
    return _main(_FIRST, _instruction(2, "tuple", shape=shape))


def nested_shapes(size: int) -> bytes:
    """Tuples in tuples, as deep as a message may be, in many instructions."""
    shape = number(2, _F32)
    for _ in range(80):
        shape = number(2, _TUPLE) + part(4, shape)
    return _main(
        _FIRST, repeated(size, lambda n: _instruction(n + 2, "tuple", shape=part(3, shape)))
    )


def layouts(size: int) -> bytes:
    layout = part(5, part(1, b"\0" * (size // 2)) + many(size // 2, part(6)))
    shape = part(3, number(2, _F32) + part(3, b"\1") + layout)
    return _main(_FIRST, _instruction(2, "copy", shape=shape))


def literal(size: int) -> bytes:
    shape = part(1, number(2, _F32) + part(3, _v(1 << 40)))
    return _main(_FIRST, _instruction(2, "constant", more=part(8, shape + part(8, bytes(size)))))


def literal_of_tuples(size: int) -> bytes:
    return _main(_FIRST, _instruction(2, "constant", more=part(8, many(size, part(10)))))


def empty_literal(size: int) -> bytes:
    """Literals whose shape has more elements than memory has bytes, and none of them."""
    shape = part(1, number(2, _F32) + part(3, _v(1 << 40)))
    return _main(
        _FIRST, repeated(size, lambda n: _instruction(n + 2, "constant", more=part(8, shape)))
    )


def windows(size: int) -> bytes:
    window = part(15, many(size, part(1)))
    return _main(_FIRST, _instruction(2, "convolution", part(36, b"\1\1"), more=window))


def replica_groups(size: int) -> bytes:
    groups = many(size // 2, part(49)) + part(49, part(1, b"\1" * (size // 2)))
    return _main(_FIRST, _instruction(2, "all-reduce", number(36, 1), more=groups))


def iota_groups(size: int) -> bytes:
    """Groups of devices that stand for 2^60 numbers, in few bytes."""
    iota = part(92, number(1, 1 << 30) + number(2, 1 << 30) + part(3, _v(1 << 60)))
    return _main(
        _FIRST,
        repeated(size, lambda n: _instruction(n + 2, "all-reduce", number(36, 1), more=iota)),
    )


def sharding(size: int) -> bytes:
    return _main(_FIRST, _instruction(2, "copy", number(36, 1), more=part(40, many(size, part(5)))))


def long_config(size: int) -> bytes:
    config = '{"a":' * (size // 5)
    return _main(_FIRST, _instruction(2, "custom-call", number(36, 1), more=part(43, config)))


def configs(size: int) -> bytes:
    config = part(43, '{"operation_queue_id":"0","wait_on_operation_queues":[]}')
    return _main(
        _FIRST,
        repeated(size, lambda n: _instruction(n + 2, "custom-call", number(36, 1), more=config)),
    )


def deep_scopes(size: int) -> bytes:
    about = part(7, part(1, "dot") + part(2, "jit(f)/" + "a/" * (size // 400) + "dot"))
    return _main(_FIRST, repeated(size, lambda n: _instruction(n + 2, "dot", more=about)))


def deep_scope(size: int) -> bytes:
    about = part(7, part(1, "dot") + part(2, "a/" * (size // 2) + "dot"))
    return _main(_FIRST, _instruction(2, "dot", number(36, 1), more=about))


def scopes(size: int) -> bytes:
    return _main(
        _FIRST,
        repeated(
            size, lambda n: _instruction(n + 2, "dot", more=part(7, part(2, f"a/{n}/b/{n}/c")))
        ),
    )


def brackets(size: int) -> bytes:
    about = part(7, part(2, "jit(" * (size // 8) + "transpose(jvp(" * (size // 32)))
    return _main(_FIRST, _instruction(2, "dot", more=about))


def long_name(size: int) -> bytes:
    return _main(_FIRST, _instruction(2, "add", name="x" * size))


def frames(size: int) -> bytes:
    """A stack as deep as the file, which every instruction has."""
    half = size // 2
    index = part(1, "a.py") + part(2, "f") + part(3, number(1, 1) + number(2, 1) + number(3, 7))
    index += repeated(half, lambda n: part(4, number(1, 1) + number(2, n)))
    about = part(7, number(15, half // 8))
    return _main(
        _FIRST,
        repeated(half, lambda n: _instruction(n + 2, "dot", more=about)),
        more=part(17, index),
    )


def deep_frames(size: int) -> bytes:
    """As `frames`, each instruction with a frame of its own."""
    half = size // 2
    index = part(1, "a.py") + part(2, "f") + part(3, number(1, 1) + number(2, 1) + number(3, 7))
    index += repeated(half, lambda n: part(4, number(1, 1) + number(2, n)))
    return _main(
        _FIRST,
        repeated(half, lambda n: _instruction(n + 2, "dot", more=part(7, number(15, n + 1)))),
        more=part(17, index),
    )


def circle_of_frames(size: int) -> bytes:
    index = part(1, "a.py") + part(2, "f") + part(3, number(1, 1) + number(2, 1))
    index += repeated(size, lambda n: part(4, number(1, 1) + number(2, n + 2)))
    return _main(_FIRST, _instruction(2, "dot", more=part(7, number(15, 1))), more=part(17, index))


def schedule(size: int) -> bytes:
    sequence = part(7, part(1, number(1, 1) + part(2, part(1, b"\1" * size))))
    return _main(_FIRST, more=sequence)


def sequences(size: int) -> bytes:
    return _main(_FIRST, more=part(7, repeated(size, lambda n: part(1, number(1, n)))))


def aliases(size: int) -> bytes:
    return _main(_FIRST, more=part(8, many(size, part(1))))


def donors(size: int) -> bytes:
    return _main(_FIRST, more=part(18, many(size, part(1))))


# What it needs of memory.


def _assigned(buffer: int, offset: int = 0, much: int = 64) -> bytes:
    return part(9, number(1, buffer) + number(2, offset) + number(3, much))


def _value(key: int, instruction: int = 1) -> bytes:
    return part(1, number(1, key) + number(2, 64) + part(3, number(4, instruction)))


def empty_values(size: int) -> bytes:
    return _main(_FIRST, assignment=many(size, part(1)))


def values(size: int) -> bytes:
    """Of one allocation."""
    half = size // 2
    count = half // 14
    held = b"".join(_assigned(n, n * 64) for n in range(count))
    values = b"".join(_value(n) for n in range(count))
    return _main(_FIRST, assignment=values + part(3, number(1, 0) + number(2, 1 << 40) + held))


def allocations(size: int) -> bytes:
    return _main(
        _FIRST,
        assignment=repeated(
            size, lambda n: _value(n) + part(3, number(1, n) + number(2, 64) + _assigned(n))
        ),
    )


def empty_allocations(size: int) -> bytes:
    return _main(_FIRST, assignment=_value(1) + many(size, part(3)))


def one_value(size: int) -> bytes:
    """In very many allocations."""
    return _main(
        _FIRST,
        assignment=_value(1) + repeated(size, lambda n: part(3, number(1, n) + _assigned(1))),
    )


def heap_events(size: int) -> bytes:
    """All alive at once."""
    count = size // 40
    values = b"".join(_value(n) for n in range(count))
    events = b"".join(part(1, number(1, 0) + number(2, n)) for n in range(count))
    held = b"".join(_assigned(n, n * 64) for n in range(count))
    allocation = part(3, number(1, 0) + number(2, 64 * count) + held)
    return _main(_FIRST, assignment=values + allocation + part(4, events + number(3, 0)))


def empty_heap_events(size: int) -> bytes:
    return _main(_FIRST, assignment=_value(1) + part(4, many(size, part(1))))


def heap_traces(size: int) -> bytes:
    return _main(_FIRST, assignment=_value(1) + many(size, part(4)))


def heaps(size: int) -> bytes:
    """Each of one event."""
    event = part(4, part(1, number(2, 1)))
    return _main(_FIRST, assignment=_value(1) + many(size, event))


def named_heap_events(size: int) -> bytes:
    """Each with a long name of its computation, which is the same."""
    name = part(3, "c" * 100) + part(4, "a")
    return _main(_FIRST, assignment=_value(1) + part(4, many(size, part(1, number(2, 1) + name))))


def shared_heap(size: int) -> bytes:
    """Values that share the one before: as sharing is followed, a chain."""
    count = size // 40
    values = b"".join(_value(n) for n in range(count))
    events = part(1, number(2, 0)) + b"".join(
        part(1, number(1, 2) + number(2, n) + number(5, n - 1)) for n in range(1, count)
    )
    return _main(_FIRST, assignment=values + part(4, events))


def peak_buffers(size: int) -> bytes:
    return _main(_FIRST, assignment=_value(1) + part(5, part(2, b"\1" * size)))


def shape_index(size: int) -> bytes:
    value = part(1, number(1, 1) + number(2, 64) + part(3, number(4, 1) + part(3, b"\0" * size)))
    return _main(_FIRST, assignment=value)
