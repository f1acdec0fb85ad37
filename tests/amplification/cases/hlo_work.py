"""Programs whose costs, values and users take much work for few bytes (xla/service/hlo.proto)."""

from tests.amplification.cases.hlo_proto import (
    _F32,
    _FIRST,
    _TUPLE,
    _assigned,
    _computation,
    _instruction,
    _main,
    _program,
    _value,
)
from tests.amplification.wire import number, part, repeated, varint


def _array(*dimensions: int) -> bytes:
    return part(3, number(2, _F32) + part(3, b"".join(map(varint, dimensions))))


def convolutions(size: int) -> bytes:
    """Each of another shape, with a kernel as wide as any."""
    return _main(
        _FIRST,
        _instruction(2, "parameter", shape=_array(1 << 20)),
        repeated(
            size,
            lambda n: _instruction(
                n + 3, "convolution", part(36, b"\2\2"), more=_windows(1), shape=_array(n + 1)
            ),
        ),
    )


def convolution_windows(size: int) -> bytes:
    """One with very many windows."""
    more = _windows(size // 6)
    return _main(
        _FIRST,
        _instruction(2, "parameter", shape=_array(1 << 20)),
        _instruction(3, "convolution", part(36, b"\2\2"), more=more, shape=_array(1)),
    )


def _windows(count: int) -> bytes:
    numbers = b"".join(part(field, b"\0" * count) for field in (6, 11, 12))
    return part(16, numbers) + part(15, part(1) * count)


def different_windows(size: int) -> bytes:
    """One with very many windows, each another."""
    windows = repeated(size // 2, lambda n: part(1, number(2, n + 1)))
    zeros = b"\0" * (size // 6)
    numbers = b"".join(part(field, zeros) for field in (6, 11, 12))
    more = part(16, numbers) + part(15, windows)
    return _main(
        _FIRST,
        _instruction(2, "parameter", shape=_array(1 << 20)),
        _instruction(3, "convolution", part(36, b"\2\2"), more=more, shape=_array(1)),
    )


def deep_product(size: int) -> bytes:
    """A product of a library whose configuration is a list in a list, and so on."""
    return _called("__cublas$gemm", b"[" * size)


def deep_convolution(size: int) -> bytes:
    """The same of a convolution."""
    return _called("__cudnn$convForward", b'{"cudnn_conv_backend_config":' + b"[" * size)


def deep_attention(size: int) -> bytes:
    """The same of attention."""
    return _called("__cudnn$fmhaSoftmax", b"[" * size)


def _called(target: str, config: bytes) -> bytes:
    more = part(28, target) + part(43, config)
    return _main(_FIRST, _instruction(2, "custom-call", number(36, 1), more))


def users_of_wide_tuple(size: int) -> bytes:
    """Each needs all that is in one tuple."""
    half = size // 2
    wide = _instruction(2, "tuple", part(36, b"\1" * half))
    users = repeated(half, lambda n: _instruction(n + 3, "foo", number(36, 2)))
    return _main(_FIRST, wide, users, more=_scheduled(2 + users.count(b"foo")))


def donated_wide_tuple(size: int) -> bytes:
    """The result is as often taken over as its parts are many."""
    half = size // 2
    wide = _instruction(2, "tuple", part(36, b"\1" * half))
    aliases = part(8, part(1) * (half // 2))
    return _program(
        _computation(1, _FIRST, wide, name="main", root=2), more=_scheduled(2) + aliases
    )


def written_over(size: int) -> bytes:
    """Results that could each take over one of many operands, but for their bytes."""
    share = size // 3
    given = repeated(share, lambda n: _instruction(n + 3, "foo", shape=_array(n + 2)))
    count = given.count(b"foo")
    parts = part(4, number(2, _F32)) * (share // 4)
    over = _instruction(
        2, "fusion", part(36, b"".join(map(varint, range(3, count + 3)))), part(11, "kLoop"),
        shape=part(3, number(2, _TUPLE) + parts),
    )  # fmt: skip
    return _main(_FIRST, given, over, more=_scheduled(count + 2, last=2))


def all_live(size: int) -> bytes:
    """Until the last, which makes a new peak of each."""
    half = size * 9 // 10
    listed = repeated(half, lambda n: _instruction(n + 3, "foo"))
    count = listed.count(b"foo")
    last = _instruction(2, "foo", part(36, b"".join(map(varint, range(3, count + 3)))))
    return _main(_FIRST, listed, last, more=_scheduled(count + 2, last=2))


def live_in_calls(size: int) -> bytes:
    """In each of calls in calls two values."""

    def level(n: int) -> bytes:
        key = 4 * n + 10
        return _computation(
            n + 2, _instruction(key, "foo"), _instruction(key + 1, "call", more=number(38, n + 3)),
            _instruction(key + 2, "foo", number(36, key)), root=key + 2,
        )  # fmt: skip

    levels = repeated(size * 3 // 4, level)
    main = _computation(1, _FIRST, _instruction(2, "call", more=number(38, 2)), name="main")
    return _program(main, levels, more=_scheduled(2))


def _scheduled(count: int, last: int = 0) -> bytes:
    order = [n for n in range(1, count + 1) if n != last] + [last] * bool(last)
    return part(7, part(1, number(1, 1) + part(2, part(1, b"".join(map(varint, order))))))


def donated_chain(size: int) -> bytes:
    """Parameters in one tuple that is handed on again and again."""
    count, steps = size // 120, size // 52
    given = range(10, count + 10)
    instructions = [_instruction(key, "parameter", more=number(9, key)) for key in given]
    top = count + 10
    instructions.append(_instruction(top, "tuple", part(36, b"".join(map(varint, given)))))
    instructions += [
        _instruction(key + 1, "tuple", number(36, key)) for key in range(top, top + steps)
    ]
    values = b"".join(_value(key, key) for key in given)
    allocations = b"".join(_held(key, number(5, 1) + number(6, key)) for key in given)
    main = _computation(1, *instructions, name="main", root=top + steps)
    return _program(main, assignment=values + allocations)


def donated_bitcasts(size: int) -> bytes:
    """Results that are all the end of one chain."""
    count = size // 54
    chain = [_instruction(key + 1, "bitcast", number(36, key)) for key in range(1, count)]
    end = varint(count)
    root = _instruction(1 << 20, "tuple", part(36, end * (size // 2 // len(end))))
    main = _computation(1, _FIRST, *chain, root, name="main", root=1 << 20)
    return _program(main, assignment=_value(1) + _held(1, b""))


def donated_pairs(size: int) -> bytes:
    """Parameters and results of one shape, of which none can lie where another one was."""
    count = size // 210
    given, made = range(10, count + 10), range(count + 20, 2 * count + 20)
    instructions = [_instruction(key, "parameter", more=number(9, key)) for key in given]
    fused = _instruction(
        3, "fusion", part(36, b"".join(map(varint, given))), number(38, 2) + part(11, "kLoop")
    )
    results = [_instruction(key, "get-tuple-element", number(36, 3)) for key in made]
    root = _instruction(1 << 20, "tuple", part(36, b"".join(map(varint, made))))
    main = _computation(1, *instructions, fused, *results, root, name="main", root=1 << 20)
    parts = [(1 << 21) + n for n in range(count)]
    taken = (_instruction(key, "parameter", more=number(9, n)) for n, key in enumerate(parts))
    foo = _instruction(1 << 22, "foo", part(36, b"".join(map(varint, parts))))
    inside = _computation(2, *taken, foo, root=1 << 22)
    held = b"".join(_value(key, key) for key in given)
    held += b"".join(_value(key, 3) for key in made)
    held += b"".join(_held(key, number(5, 1)) for key in given)
    held += b"".join(_held(key, number(7, 1)) for key in made)
    return _program(main, inside, assignment=held)


def _held(key: int, more: bytes) -> bytes:
    return part(3, number(1, key) + number(2, 64) + more + _assigned(key))


def calls_of_wide(size: int) -> bytes:
    """Different calls of a computation that reads very many operands."""
    return _calls_of_wide(size, "call", number(38, 2))


def conditionals_of_wide(size: int) -> bytes:
    """The same of conditionals, that choose the same many times."""
    return _calls_of_wide(size, "conditional", part(38, b"\2" * 9))


def computations_of_wide(size: int) -> bytes:
    """The same of computations that do nothing but that."""

    def unit(n: int) -> bytes:
        key = (1 << 21) + 2 * n
        call = _instruction(key, "call", more=number(38, 2), shape=_array(n + 1))
        return _computation(n + 3, call, root=key)

    half = size // 2
    callers = repeated(half, unit)
    count = callers.count(b"call")
    calls = _instruction(2, "foo", more=part(38, b"".join(varint(n + 3) for n in range(count))))
    return _program(_computation(1, _FIRST, calls, name="main"), _wide(half), callers)


def _calls_of_wide(size: int, opcode: str, called: bytes) -> bytes:
    half = size // 2
    calls = repeated(half, lambda n: _instruction(n + 2, opcode, more=called, shape=_array(n + 1)))
    return _program(_computation(1, _FIRST, calls, name="main"), _wide(half))


def _wide(size: int) -> bytes:
    foo = _instruction(9, "foo", part(36, varint(1 << 20) * (size // 3)))
    return _computation(2, _instruction(1 << 20, "parameter"), foo, root=9)


def fusions_of_one(size: int) -> bytes:
    """Different fusions of one large computation."""
    return _fusions_of_one(size, "kLoop")


def custom_fusions_of_one(size: int) -> bytes:
    """The same that could each be one gather."""
    return _fusions_of_one(size, "kCustom")


def _fusions_of_one(size: int, kind: str) -> bytes:
    half, base = size // 2, 1 << 20
    more = number(38, 2) + part(11, kind)
    fusions = repeated(half, lambda n: _instruction(n + 2, "fusion", more=more, shape=_array(n)))
    parts = repeated(
        half, lambda n: _instruction(base + n + 1, "add", part(36, varint(base + n) * 2))
    )
    inside = _computation(2, _instruction(base, "parameter"), parts, root=base)
    return _program(_computation(1, _FIRST, fusions, name="main"), inside)
